import { randomUUID } from 'node:crypto';
import { OVERDUE, within } from '../../base/clock.js';
import type { Claim, KeyState, LeaseStore } from '../../lease/store.js';

/** How long a test key may stay, if releasing it is what fails; milliseconds. */
const LEASE_TIME = 5_000;
const HEARD_WITHIN = 2_000;

/** Runs every method of the store that a lock needs, on a key that nobody holds. Rejects with the server's refusal. */
export async function takeAndGiveBack(store: LeaseStore, key: string): Promise<void> {
  const claim = claimOf(key);
  const successor = randomUUID();
  await store.acquire(claim);
  const [extension] = await store.extend([claim]);
  if (extension instanceof Error) throw extension;
  await store.yield(claim);
  await store.transfer(claim, successor);
  await store.inspect(claim.key);
  await store.force(claim.key, successor);
  await store.release(claim);
  await waitInQueue(store, key);
}

/** A process that waits has a place in the queue, however it is woken. Resolves to the names that are read of it. */
export async function waitInQueue(store: LeaseStore, key: string): Promise<KeyState['waiters']> {
  const [holder, contender] = [claimOf(key), claimOf(key)];
  await store.acquire(holder);
  await store.acquire(contender, { enter: LEASE_TIME });
  const { waiters } = await store.inspect(key, 1);
  await store.release(contender);
  await store.release(holder);
  return waiters;
}

/** Whether a waiting process receives the wake-up of a release. Rejects with the server's refusal. */
export async function hearsOfRelease(store: LeaseStore, key: string): Promise<boolean> {
  const holder = claimOf(key);
  const contender = claimOf(key);
  let heard: () => void = () => {};
  const wakeUp = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const watch = await store.watch(holder.key, () => heard());
  try {
    await store.acquire(holder);
    await store.acquire(contender, { enter: LEASE_TIME });
    await store.release(holder);
    const silent = (await within(wakeUp, HEARD_WITHIN)) === OVERDUE;
    await store.release(contender);
    return !silent;
  } finally {
    watch.close();
  }
}

/** Sends the hint of a COMMIT, for nobody. Rejects with the server's refusal. */
export async function sendHint(store: LeaseStore, key: string): Promise<void> {
  const claim = claimOf(key);
  await store.acquire(claim);
  try {
    await store.hint?.(claim);
  } finally {
    await store.release(claim);
  }
}

function claimOf(key: string): Claim {
  return { key, holder: randomUUID(), leaseTime: LEASE_TIME };
}
