import { AsyncLocalStorage } from 'node:async_hooks';

/** A write in the function of a lock, on its way. Whether it belongs to the lock's transaction shows where it arrives. */
interface Write {
  /** What it is refused with on another connection. */
  refuse(): Error;
}

/** On `globalThis`: the pool may have been fenced by another copy of this package. */
const SLOT = Symbol.for('prisma-extension-fenced-lock.writes');
const slots = globalThis as { [SLOT]?: AsyncLocalStorage<Write> };
slots[SLOT] ??= new AsyncLocalStorage<Write>();

export const writes = slots[SLOT];

/** A connection that is no lock's, fetched in the function of a lock: a write that arrives on it is refused. */
export function refusingWrites<C extends { query(...given: never[]): unknown }>(client: C): C {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      if (name !== 'query') return value.bind(target) as unknown;
      return (...given: never[]) => {
        const write = writes.getStore();
        return write ? Promise.reject(write.refuse()) : target.query(...given);
      };
    },
  });
}
