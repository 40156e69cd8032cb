import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockHandle, LockTx } from '../../../../src/index.js';
import type { HandlePart } from '../history.js';
import type { HandedOver } from '../messages.js';
import type { LockingClient } from './client.js';
import type { Errand, Way } from './way.js';

type Handle = LockHandle<LockTx<LockingClient>>;

/** How often a handle is not renewed and never released: its lease ends by itself. */
const FORGOTTEN = 0.15;
/** How many further transactions a handle is good for, and how often it is refused before it gives up. */
const MOST_TRANSACTIONS = 3;
const MOST_REFUSALS = 2;

/** Several operations under one handle. `handOver`: its state also goes to another process, which may resume it. */
export function handle(prisma: LockingClient, handOver?: (given: HandedOver) => void): Way {
  return {
    mostKeys: 2,
    async run(errand) {
      const { keys, leaseTime, random } = errand;
      const part = { id: randomUUID(), resumed: 0 };
      const renew = random.next() >= FORGOTTEN;
      const lock = await begin(() => prisma.$lock(keys, { leaseTime, renew }), part, errand);
      if (lock === undefined) return;
      const { id, resumed } = part;
      // From here on two may try to write.
      handOver?.({ type: 'handed over', state: lock.toJSON(), part: { id, resumed: resumed + 1 } });
      await goOn(lock, part, errand);
      if (renew) await lock.release();
    },
  };
}

/** What becomes of a handle that was handed over. */
export function resumed(prisma: LockingClient, { state, part }: HandedOver): Way {
  return {
    mostKeys: state.keys.length,
    async run(errand) {
      const lock = await begin(() => prisma.$resumeLock(state), part, errand);
      if (lock === undefined) return;
      await goOn(lock, part, errand);
      await lock.release();
    },
  };
}

/** The first operation: to get the handle belongs to it. Resolves to the handle, if it was had. */
async function begin(get: () => Promise<Handle>, part: HandlePart, { operate }: Errand): Promise<Handle | undefined> {
  let lock: Handle | undefined;
  await operate(async (work) => {
    const had = await get();
    lock = had;
    await had.$transaction((tx, { token }) => work(tx, token));
  }, part);
  return lock;
}

/** Tries on, also when its lease is lost: every refusal must have had no effect. */
async function goOn(lock: Handle, part: HandlePart, { random, operate }: Errand): Promise<void> {
  let refusals = 0;
  for (let left = random.whole(0, MOST_TRANSACTIONS); left > 0 && refusals < MOST_REFUSALS; left--) {
    await sleep(random.whole(0, 30));
    const outcome = await operate((work) => lock.$transaction((tx, { token }) => work(tx, token)), part);
    if (outcome !== 'ok') refusals++;
  }
}
