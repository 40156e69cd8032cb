import { randomUUID } from 'node:crypto';
import { OVERDUE, within } from '../../base/clock.js';
import type { Claim, LeaseStore } from '../../lease/store.js';
import { messageOf } from '../problem.js';
import { type Check, fault, ok } from './check.js';

/** How long a key of ours may be left behind, if giving it back is what is refused; milliseconds. */
const LEASE_TIME = 5_000;
const HEARD_WITHIN = 2_000;

/** Every verb on a key that nobody else has: what the server refuses, it refuses here. */
export const scripts: Check<{ store: LeaseStore }> = {
  name: 'scripts',
  essential: true,
  async look({ store }) {
    const claim = someClaim();
    const successor = randomUUID();
    try {
      await store.acquire(claim);
      const [extension] = await store.extend([claim]);
      if (extension instanceof Error) throw extension;
      await store.yield(claim);
      await store.transfer(claim, successor);
      await store.inspect(claim.key);
      await store.force(claim.key, successor);
      await store.release(claim);
      return ok('A lock was taken, extended and given back.');
    } catch (error) {
      return fault(
        `A lock was refused: ${messageOf(error)}.`,
        'See "Hardening" in docs/topologies.md, and "Rights" in the README.',
      );
    }
  },
};

/** Somebody waits, and is to hear of a release. */
export const wakeUps: Check<{ store: LeaseStore }> = {
  name: 'wake-ups',
  async look({ store }) {
    const holder = someClaim();
    const contender = { ...holder, holder: randomUUID() };
    try {
      let heard: () => void = () => {};
      const wakeUp = new Promise<void>((resolve) => {
        heard = resolve;
      });
      const watch = await store.watch(holder.key, () => heard());
      await store.acquire(holder);
      await store.acquire(contender, { enter: LEASE_TIME });
      await store.release(holder);
      const silent = (await within(wakeUp, HEARD_WITHIN)) === OVERDUE;
      await store.release(contender);
      watch.close();
      if (!silent) return ok('A release was heard.');
      return fault(
        'A release was published, and not heard.',
        'Connect to the server itself: what stands between must pass on pub/sub.',
      );
    } catch (error) {
      return fault(
        `Wake-ups were refused: ${messageOf(error)}.`,
        'Whoever waits would look four times a second instead: see "Rights" in the README.',
      );
    }
  },
};

function someClaim(): Claim {
  return { key: `fenced-lock doctor ${randomUUID()}`, holder: randomUUID(), leaseTime: LEASE_TIME };
}
