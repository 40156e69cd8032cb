import { runInside, scopeWith } from '../base/scope.js';

/**
 * A write by the base client inside the function of a lock. The connection that it arrives on tells whether it belongs
 * to the lock's transaction.
 */
interface OutsideWrite {
  /** The error for a write on another connection. */
  refuse(): Error;
}

export function writing<R>(write: OutsideWrite, send: () => Promise<R>): Promise<R> {
  return runInside({ write }, send);
}

/** The error for the write that is being sent in this async context, if there is one. */
export function refusalOfWrite(): Error | undefined {
  return (scopeWith('write')?.inside.write as OutsideWrite | undefined)?.refuse();
}

/**
 * Wraps an ordinary connection that was taken from the pool inside the function of a lock: a write on it is refused.
 */
export function refusingWrites<C extends { query(...given: never[]): unknown }>(client: C): C {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'query') return value.bind(target) as unknown;
      return (...given: never[]) => {
        const refusal = refusalOfWrite();
        return refusal ? Promise.reject(refusal) : target.query(...given);
      };
    },
  });
}
