import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { AcquireResult, Claim, LeaseStore } from '../../src/waiting/store.js';

/** One client of the leases, as if it were a process of its own. */
export interface StoreActor {
  readonly store: LeaseStore;
  /** Ends its connections at once and for good, as a crash does; resolves when the server knows of it. */
  kill(): Promise<void>;
  /** Makes the server lose all it knows of the key, as a restart does. */
  forget(key: string): Promise<unknown>;
}

/** Gives a new client of the same leases each time, and closes it when the test is over. `name`: what others are told of it. */
export type MakeActor = (name?: string) => StoreActor | Promise<StoreActor>;

export const LONG = 60_000;
/** Long enough for the few commands between two lines of a test, short enough to wait for its end. */
export const SHORT = 250;

export function claimOf(key: string, leaseTime = LONG): Claim {
  return { key, holder: randomUUID(), leaseTime };
}

/** A store may keep a lease a little longer than its holder was told, and never shorter. */
export function atMost(leaseTime: number): number {
  return Math.ceil(leaseTime * 1.01) + 2;
}

export function expectLeft(answer: AcquireResult, above: number, upTo: number): void {
  expect(answer).toMatchObject({ taken: false });
  const { expiresIn } = answer as { expiresIn: number };
  expect(expiresIn).toBeGreaterThan(above);
  expect(expiresIn).toBeLessThanOrEqual(atMost(upTo));
}

/**
 * The same of a lease that was just given more time. Most nodes have said so, and of those that are asked now one may hear of
 * it last: asks again while that one has less, until it would have ended.
 */
export async function expectMoreLeft(store: LeaseStore, key: string, above: number, upTo: number): Promise<void> {
  let answer = await store.acquire(claimOf(key));
  while (!answer.taken && answer.expiresIn <= above) answer = await store.acquire(claimOf(key));
  expectLeft(answer, above, upTo);
}

/** Asks again when the store says that the lease will have ended: nothing else announces it. */
export async function takenAtTheEnd(store: LeaseStore, claim: Claim, leaseTime: number): Promise<void> {
  for (;;) {
    const answer = await store.acquire(claim);
    if (answer.taken) return;
    expect(answer.expiresIn).toBeLessThanOrEqual(atMost(leaseTime));
    await new Promise((resolve) => setTimeout(resolve, answer.expiresIn + 1));
  }
}
