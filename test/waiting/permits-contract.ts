import { describe, expect, test } from 'vitest';
import { anyPermit, permitName } from '../../src/base/permits.js';
import type { Claim, LeaseStore } from '../../src/waiting/store.js';
import { someKey } from './actors.js';
import { claimOf, LONG, type MakeActor, SHORT } from './claims.js';
import { Waiter } from './waiter.js';

/** Of holders behind whom others enter the queue, also on a busy machine. */
const SOON = 1_500;

/** What every store of leases with a queue keeps of permits. */
export function describePermits(name: string, makeActor: MakeActor): void {
  const make = async () => (await makeActor()).store;

  /** Takes any one of so many, which has to be this one. Returns the claim of its lease. */
  async function take(store: LeaseStore, key: string, of: number, expected: number, leaseTime = LONG): Promise<Claim> {
    const claim = claimOf(anyPermit(key, of), leaseTime);
    expect(await store.acquire(claim)).toMatchObject({ taken: true, key: permitName(key, expected) });
    return { ...claim, key: permitName(key, expected) };
  }
  const enter = async (key: string, of: number) => Waiter.enter(await makeActor(), anyPermit(key, of));
  const numberOf = async (store: LeaseStore, { claim }: Waiter) => {
    const answer = await store.acquire(claim);
    return answer.taken ? answer.key : undefined;
  };

  describe(`${name}: permits`, () => {
    test('as many are given as there are, the first free one each time, and no more', async () => {
      const [store, other, key] = [await make(), await make(), someKey()];
      const [first] = [await take(store, key, 3, 0), await take(other, key, 3, 1), await take(store, key, 3, 2)];
      expect(await other.acquire(claimOf(anyPermit(key, 3)))).toMatchObject({ taken: false });
      await store.release(first);
      await take(other, key, 3, 0);
    });

    test('a lock of the same key is another thing', async () => {
      const [store, key] = [await make(), someKey()];
      await take(store, key, 1, 0);
      expect(await store.acquire(claimOf(key))).toMatchObject({ taken: true });
    });

    test('an acquire that is repeated gets the same one', async () => {
      const [store, key] = [await make(), someKey()];
      const claim = claimOf(anyPermit(key, 3));
      await take(store, key, 3, 0);
      for (let time = 0; time < 2; time++) {
        expect(await store.acquire(claim)).toMatchObject({ taken: true, key: permitName(key, 1) });
      }
      await take(store, key, 3, 2);
    });

    test('each lease is extended, ends and is released by itself', async () => {
      const [store, key] = [await make(), someKey()];
      const [kept, left] = [await take(store, key, 2, 0, SHORT), await take(store, key, 2, 1, SHORT)];
      expect(await store.extend([{ ...kept, leaseTime: LONG }])).toEqual(['extended']);
      const next = claimOf(anyPermit(key, 2));
      const denied = await store.acquire(next);
      if (!denied.taken) await ended(denied.expiresIn);
      expect(await store.acquire(next)).toMatchObject({ taken: true, key: left.key });
      expect(await store.extend([left, kept])).toEqual(['gone', 'extended']);
      await store.release(left);
      expect(await store.acquire(claimOf(anyPermit(key, 2)))).toMatchObject({ taken: false });
    });

    test('first come, first served, with whichever permit comes free', async () => {
      const [store, key] = [await make(), someKey()];
      const held = [await take(store, key, 2, 0), await take(store, key, 2, 1)];
      const [one, two] = [await enter(key, 2), await enter(key, 2)];
      const told = one.next();
      await store.release(held[1] as Claim);
      expect(await told).toEqual(one.turn());
      expect(await two.look()).toBe(false);
      expect(await numberOf(store, one)).toBe(permitName(key, 1));
      await store.release(held[0] as Claim);
      expect(await numberOf(store, two)).toBe(permitName(key, 0));
    });

    test('several that come free at once are offered to several, by whoever looks', async () => {
      const [store, key] = [await make(), someKey()];
      await take(store, key, 2, 0, SOON);
      await take(store, key, 2, 1, SOON);
      const [one, two] = [await enter(key, 2), await enter(key, 2)];
      await ended(SOON);
      expect(await store.acquire(claimOf(anyPermit(key, 2)))).toMatchObject({ taken: false });
      expect([await numberOf(store, one), await numberOf(store, two)]).toEqual([0, 1].map((at) => permitName(key, at)));
    });

    test('a lower number waits until fewer are taken, and who comes behind it waits, too', async () => {
      const [store, key] = [await make(), someKey()];
      const held = [await take(store, key, 3, 0), await take(store, key, 3, 1), await take(store, key, 3, 2)];
      const [lower, later] = [await enter(key, 2), await enter(key, 3)];
      await store.release(held[0] as Claim);
      expect([await lower.look(), await later.look()]).toEqual([false, false]);
      await store.release(held[1] as Claim);
      expect(await numberOf(store, lower)).toBe(permitName(key, 0));
      expect(await numberOf(store, later)).toBe(permitName(key, 1));
    });

    test('a higher number works beside those that are at work', async () => {
      const [store, key] = [await make(), someKey()];
      await take(store, key, 1, 0);
      await take(store, key, 3, 1);
      await take(store, key, 3, 2);
    });

    test('one that gives up, or has ended, is skipped, and passes on what it was just offered', async () => {
      const [store, key] = [await make(), someKey()];
      const held = await take(store, key, 1, 0);
      const dead = await makeActor();
      await Waiter.enter(dead, anyPermit(key, 1));
      await dead.kill();
      const [one, two] = [await enter(key, 1), await enter(key, 1)];
      await store.release(held);
      expect(await one.next()).toEqual(one.turn());
      await one.release();
      expect(await numberOf(store, two)).toBe(permitName(key, 0));
    });

    test('a renewal that finds nothing passes on what was lost', async () => {
      const [actor, key] = [await makeActor(), someKey()];
      const { store } = actor;
      const lost = await take(store, key, 1, 0);
      await actor.forget(anyPermit(key, 1));
      const waiter = await makeActor();
      const told = new Promise((resolve) => void waiter.store.watch(anyPermit(key, 1), resolve));
      await waiter.store.inspect(lost.key);
      expect(await store.extend([lost])).toEqual(['gone']);
      expect(await told).toBe('look');
    });

    test('a transfer moves one of them, and nobody else has it in between', async () => {
      const [store, key] = [await make(), someKey()];
      const claim = await take(store, key, 1, 0);
      expect(await store.transfer(claim, 'successor')).toBe(true);
      expect(await store.extend([claim, { ...claim, holder: 'successor' }])).toEqual(['gone', 'extended']);
    });

    test('operators see each of them, and take one', async () => {
      const [store, key] = [await make(), someKey()];
      const held = [await take(store, key, 2, 0), await take(store, key, 2, 1)];
      const waiter = await enter(key, 2);
      const ours = (await store.list()).filter((state) => state.key.startsWith(key));
      expect(ours.map(({ key: each, holder, waiting }) => ({ each, holder, waiting }))).toEqual(
        held.map((claim) => ({ each: claim.key, holder: claim.holder, waiting: 1 })),
      );
      expect(await store.inspect(permitName(key, 5))).toMatchObject({ holder: undefined, waiting: 1 });
      expect(await store.force(permitName(key, 1), (held[0] as Claim).holder)).toBe(false);
      expect(await store.force(permitName(key, 1), (held[1] as Claim).holder)).toBe(true);
      expect(await numberOf(store, waiter)).toBe(permitName(key, 1));
      expect(await store.extend([held[1] as Claim])).toEqual(['gone']);
    });
  });
}

function ended(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms + 2));
}
