import { runInside, scopeWith } from '../base/scope.js';

/** A write in the function of a lock, on its way. Whether it belongs to the lock's transaction shows where it arrives. */
interface OutsideWrite {
  /** What it is refused with on another connection. */
  refuse(): Error;
}

export function writing<R>(write: OutsideWrite, send: () => Promise<R>): Promise<R> {
  return runInside({ write }, send);
}

/** What the write that is on its way here is refused with, if one is. */
export function refusalOfWrite(): Error | undefined {
  return (scopeWith('write')?.inside.write as OutsideWrite | undefined)?.refuse();
}

/** A connection that is no lock's, fetched in the function of a lock: a write that arrives on it is refused. */
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
