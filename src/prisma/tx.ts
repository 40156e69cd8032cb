import { ClosedError, InsideTransactionError } from '../base/errors.js';
import { UNSENT, type Unsent } from './unsent.js';

/** Methods that leave the transaction or its connection. The client of a lock's transaction does not have them. */
export const NOT_ON_TX = [
  '$connect',
  '$disconnect',
  '$on',
  '$extends',
  '$transaction',
  '$withLock',
  '$tryWithLock',
  '$oncePer',
  '$lock',
  '$resumeLock',
  '$locks',
] as const;

const EXITS: ReadonlySet<unknown> = new Set(NOT_ON_TX);

/**
 * Wraps the client of a transaction: without methods that leave it (the array form of `$transaction` would do so
 * silently), and closed when the transaction ends, after which every operation rejects.
 */
export function fencedTx(tx: object, key: string, unsent: Unsent): { readonly tx: object; close(): void } {
  let open = true;
  // The proxy has a target of its own. After each `get`, the engine compares the value with the target's own property,
  // and Prisma's client is a proxy that computes that property again.
  const proxy = new Proxy(
    {},
    {
      get(_, property, receiver) {
        if (!open && typeof property === 'string') return refusing(key);
        if (EXITS.has(property)) return exit(String(property));
        if (property === UNSENT) return unsent.first;
        return unsent.watched(property, Reflect.get(tx, property, receiver));
      },
      has: (_, property) => !EXITS.has(property) && Reflect.has(tx, property),
      set: (_, property, value, receiver) => Reflect.set(tx, property, value, receiver),
      // Assignments arrive here, too, because the receiver is this proxy.
      defineProperty: (_, property, descriptor) => Reflect.defineProperty(tx, property, descriptor),
      deleteProperty: (_, property) => Reflect.deleteProperty(tx, property),
      ownKeys: () => Reflect.ownKeys(tx).filter((property) => !EXITS.has(property)),
      getOwnPropertyDescriptor(_, property) {
        const descriptor = EXITS.has(property) ? undefined : Reflect.getOwnPropertyDescriptor(tx, property);
        return descriptor && { ...descriptor, configurable: true };
      },
      getPrototypeOf: () => Reflect.getPrototypeOf(tx),
    },
  );
  return {
    tx: proxy,
    close() {
      open = false;
    },
  };
}

/** A model, or an operation, that can be called and always rejects. */
function refusing(key: string): unknown {
  const refuse = () =>
    Promise.reject(
      new ClosedError(
        'The transaction of this lock has ended, and the operation was not sent. Await every operation inside the function.',
        { key },
      ),
    );
  return new Proxy(refuse, { get: (_, property) => (property === 'then' ? undefined : refuse) });
}

/** `$extends` is undefined: extensions test it to find out whether they are inside a transaction. */
function exit(name: string): unknown {
  if (name === '$extends') return undefined;
  return () => {
    throw new InsideTransactionError(
      `\`${name}\` was called on the client of a lock's transaction, and would leave that transaction. Call it on the ` +
        'base client, outside the function.',
    );
  };
}
