import { InsideTransactionError, lateOperation } from '../base/errors.js';
import { IN_FLIGHT, UNSENT, type Unsent } from './unsent.js';

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
        if (!open && typeof property === 'string') return refusing(key, property);
        if (EXITS.has(property)) return exit(String(property));
        if (property === UNSENT) return unsent.first;
        if (property === IN_FLIGHT) return unsent.inFlight;
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
      unsent.close();
    },
  };
}

/** A model, or an operation, that can be called and always rejects. */
function refusing(key: string, name: string): unknown {
  const refuse = (operation: string) => () => Promise.reject(lateOperation(key, operation));
  return new Proxy(refuse(name), {
    get: (_, property) => (property === 'then' ? undefined : refuse(`${name}.${String(property)}`)),
  });
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
