import { setTimeout as sleep } from 'node:timers/promises';
import type { LockingClient } from './client.js';
import type { Way } from './way.js';

/** About as long as a turn takes, so that the end comes at each of its steps; milliseconds. */
const LATEST = 60;
/** How often the function stands still. It keeps the key from all others meanwhile. */
const STANDS_STILL = 0.25;

class ByCaller extends Error {
  readonly code = 'ABORTED_BY_CALLER';
}

/** The caller's own signal ends the call: while it waits, while it works, or at COMMIT. */
export function aborted(prisma: LockingClient): Way {
  return {
    mostKeys: 2,
    run: ({ keys, leaseTime, random, operate }) =>
      operate(async (work) => {
        const controller = new AbortController();
        const timer = setTimeout(() => controller.abort(new ByCaller()), random.whole(0, LATEST));
        const options = { leaseTime, signal: controller.signal };
        try {
          await prisma.$withLock(keys, (tx, { token }) => work(tx, token), options);
        } finally {
          clearTimeout(timer);
        }
      }),
  };
}

/** The work may take less than it needs. */
export function overdue(prisma: LockingClient): Way {
  return {
    mostKeys: 2,
    run: ({ keys, leaseTime, random, operate }) =>
      operate((work) => {
        const options = { leaseTime, timeout: random.whole(1, LATEST) };
        return prisma.$withLock(keys, (tx, { token }) => work(tx, token), options);
      }),
  };
}

/** The function stands still until its lease has ended, which nobody renews, and then writes. */
export function unrenewed(prisma: LockingClient): Way {
  return {
    mostKeys: 1,
    run: ({ keys, leaseTime, random, operate }) =>
      operate((work) => {
        const pause = random.next() < STANDS_STILL ? leaseTime + random.whole(-20, 200) : 0;
        const still = async () => void (pause > 0 && (await sleep(pause)));
        return prisma.$withLock(keys, (tx, { token }) => still().then(() => work(tx, token)), {
          leaseTime,
          renew: false,
        });
      }),
  };
}
