import { expect } from 'vitest';
import type { Claim, LeaseStore, Look, WakeUp } from '../../src/waiting/store.js';
import { someKey } from './actors.js';
import { claimOf, LONG, type MakeActor, type StoreActor } from './claims.js';
import { Tally } from './tally.js';

/** One that waits in the queue of a key, and does nothing by itself. */
export class Waiter {
  readonly claim: Claim;
  readonly heard: WakeUp[] = [];
  readonly #news = new Tally();
  #read = 0;
  readonly #store: LeaseStore;

  private constructor(store: LeaseStore, key: string) {
    this.#store = store;
    this.claim = claimOf(key);
  }

  static async enter({ store }: StoreActor, key: string): Promise<Waiter> {
    const waiter = new Waiter(store, key);
    await store.watch(key, (wakeUp) => {
      waiter.heard.push(wakeUp);
      waiter.#news.add();
    });
    expect(await waiter.look()).toBe(false);
    return waiter;
  }

  /** Whether it has the key now; otherwise it has a place. */
  async look(look: Look = {}, leaseTime = this.claim.leaseTime): Promise<boolean> {
    return (await this.#store.acquire({ ...this.claim, leaseTime }, { enter: LONG, ...look })).taken;
  }

  release(): Promise<void> {
    return this.#store.release(this.claim);
  }

  /** The next message that was not asked for yet. */
  async next(): Promise<WakeUp> {
    const place = this.#read++;
    await this.#news.reach(place + 1);
    return this.heard[place] as WakeUp;
  }

  turn(): { offeredTo: string; expiresIn: number } {
    return { offeredTo: this.claim.holder, expiresIn: expect.any(Number) as number };
  }
}

/** A held key, and waiters from a process each, in this order. */
export async function queued(makeActor: MakeActor, count: number, leaseTime = LONG) {
  const [{ store }, key] = [await makeActor(), someKey()];
  const holder = { store, claim: claimOf(key, leaseTime), release: () => store.release(holder.claim) };
  expect(await store.acquire(holder.claim)).toMatchObject({ taken: true });
  const actors: StoreActor[] = [];
  const waiters: Waiter[] = [];
  for (let index = 0; index < count; index++) {
    const actor = await makeActor();
    actors.push(actor);
    waiters.push(await Waiter.enter(actor, key));
  }
  const [first, second, third] = waiters as [Waiter, Waiter, Waiter];
  return { key, holder, actors, first, second, third };
}
