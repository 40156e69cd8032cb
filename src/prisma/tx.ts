import { InsideTransactionError } from '../base/errors.js';

/** What leaves the transaction, or its connection: not to be had on the client of a lock. */
export const NOT_ON_TX = [
  '$connect',
  '$disconnect',
  '$on',
  '$extends',
  '$transaction',
  '$withLock',
  '$tryWithLock',
  '$lock',
  '$resumeLock',
  '$locks',
] as const;

const EXITS: ReadonlySet<unknown> = new Set(NOT_ON_TX);

/** The transaction's client without what leaves it; the array form of `$transaction` does so silently. */
export function withoutExits(tx: object): object {
  return new Proxy(tx, {
    get(target, property, receiver) {
      if (EXITS.has(property)) return exit(String(property));
      return Reflect.get(target, property, receiver) as unknown;
    },
    has: (target, property) => !EXITS.has(property) && Reflect.has(target, property),
  });
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
