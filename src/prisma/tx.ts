import { ClosedError, InsideTransactionError } from '../base/errors.js';
import { UNSENT, type Unsent } from './unsent.js';

/** What leaves the transaction, or its connection: not to be had on the client of a lock. */
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
 * The transaction's client without what leaves it (the array form of `$transaction` does so silently), until it is closed:
 * then everything on it rejects.
 */
export function fencedTx(tx: object, key: string, unsent: Unsent): { readonly tx: object; close(): void } {
  let open = true;
  // Over an object of its own: after each `get` the engine compares with the target's own property, and Prisma's client is a
  // proxy that works that out anew.
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
      // Also what is set comes here, by its receiver.
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

/** A model, or one of its operations, that can be called and always rejects. */
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

/** `$extends` stays undefined: that is how an extension tells that it is inside a transaction. */
function exit(name: string): unknown {
  if (name === '$extends') return undefined;
  return () => {
    throw new InsideTransactionError(
      `\`${name}\` was called on the client of a lock's transaction, which it would leave. Call it on the client ` +
        'itself, outside the function.',
    );
  };
}
