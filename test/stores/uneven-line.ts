import { now, sleep } from '../../src/base/clock.js';
import type { LeaseStore } from '../../src/waiting/store.js';

/** The store at the other end of a line that takes another time for each command, and keeps their order. */
export function overUnevenLine(store: LeaseStore, delay: () => number): LeaseStore {
  let last = 0;
  let arrived = Promise.resolve();
  return new Proxy(store, {
    get: (target, verb) => {
      // Nothing of that goes to the server.
      if (verb === 'onReturn') return target.onReturn.bind(target);
      const action = Reflect.get(target, verb) as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => {
        last = Math.max(last, now() + delay());
        arrived = arrived.then(() => sleep(last - now()));
        return arrived.then(() => action.apply(target, args));
      };
    },
  });
}
