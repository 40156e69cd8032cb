import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { LeaseStore } from '../../src/waiting/store.js';
import { someKey } from './actors.js';
import { claimOf, expectLeft, expectMoreLeft, LONG, type MakeActor, SHORT, takenAtTheEnd } from './claims.js';
import { describeOperators } from './operator-contract.js';
import { describeWakeUps } from './wake-up-contract.js';

/**
 * What every store of leases keeps; one without wake-ups, or whose nodes may split their votes, says so. What one keeps that has a queue is in
 * `order-contract.ts`. The keys are new ones, so
 * the server may be shared.
 */
export function describeStore(name: string, makeActor: MakeActor, { wakeUps = true, ties = false } = {}): void {
  const make = async () => (await makeActor()).store;

  describe(`${name}: exclusion`, () => {
    test('a free key is taken, and the contender is told how long the lease still stands', async () => {
      const [holder, contender] = [await make(), await make()];
      const key = someKey();
      expect(await holder.acquire(claimOf(key))).toMatchObject({ taken: true });
      expectLeft(await contender.acquire(claimOf(key)), 0, LONG);
    });

    test('of many contenders at once exactly one takes the key', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, make));
      const key = someKey();
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) => (stores[index % 4] as LeaseStore).acquire(claimOf(key))),
      );
      const takers = answers.filter(({ taken }) => taken).length;
      if (ties) expect(takers).toBeLessThanOrEqual(1);
      else expect(takers).toBe(1);
    });
  });

  describe(`${name}: expiry`, () => {
    test('a lease that nobody extends ends by itself', async () => {
      const [holder, contender] = [await make(), await make()];
      const key = someKey();
      await holder.acquire(claimOf(key, SHORT));
      const successor = claimOf(key);
      await takenAtTheEnd(contender, successor, SHORT);
      expectLeft(await holder.acquire(claimOf(key)), SHORT, LONG);
    });
  });

  describe(`${name}: renewal`, () => {
    test('an extension gives the lease its full time again', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      expect(await holder.extend([{ ...claim, leaseTime: LONG }])).toEqual(['extended']);
      await expectMoreLeft(contender, claim.key, SHORT, LONG);
    });

    test('an extension of what was never taken is told "gone", and takes nothing', async () => {
      const [stranger, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      expect(await stranger.extend([claim])).toEqual(['gone']);
      expect(await contender.acquire(claimOf(claim.key))).toMatchObject({ taken: true });
    });

    test("an extension of somebody else's lease is told 'gone', and does not extend it", async () => {
      const [holder, stranger] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      expect(await stranger.extend([claimOf(claim.key, LONG)])).toEqual(['gone']);
      expectLeft(await stranger.acquire(claimOf(claim.key)), 0, SHORT);
    });

    test('many at once are answered one by one, in order', async () => {
      const [holder, other] = [await make(), await make()];
      const claims = Array.from({ length: 9 }, () => claimOf(someKey()));
      for (const [index, claim] of claims.entries()) {
        if (index % 3 === 0) await holder.acquire(claim);
        if (index % 3 === 1) await other.acquire(claimOf(claim.key));
      }
      expect(await holder.extend(claims)).toEqual(claims.map((_, index) => (index % 3 === 0 ? 'extended' : 'gone')));
      expect(await holder.extend([])).toEqual([]);
    });
  });

  describe(`${name}: ownership`, () => {
    test('only its holder releases a lease', async () => {
      const [holder, stranger] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      await stranger.release(claimOf(claim.key));
      expect(await stranger.acquire(claimOf(claim.key))).toMatchObject({ taken: false });
      expect(await holder.extend([claim])).toEqual(['extended']);
    });

    test('a release that comes late does not touch the successor', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      const successor = claimOf(claim.key);
      await takenAtTheEnd(contender, successor, SHORT);
      await holder.release(claim);
      expect(await contender.extend([successor])).toEqual(['extended']);
    });
  });

  describe(`${name}: yield and transfer`, () => {
    test('where nobody else waits, a yield keeps the lease, with its full time again', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      expect(await holder.yield({ ...claim, leaseTime: LONG })).toBe(true);
      await expectMoreLeft(contender, claim.key, SHORT, LONG);
    });

    test('a yield of what nobody has takes nothing', async () => {
      const [stranger, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      expect(await stranger.yield(claim)).toBe(false);
      expect(await contender.acquire(claimOf(claim.key))).toMatchObject({ taken: true });
    });

    test("a yield of somebody else's lease neither takes nor frees nor extends it", async () => {
      const [holder, stranger] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      expect(await stranger.yield(claimOf(claim.key, LONG))).toBe(false);
      expectLeft(await stranger.acquire(claimOf(claim.key)), 0, SHORT);
    });

    test('a transfer puts the lease into the name of the successor, with its full time', async () => {
      const [holder, other] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      const successor = claimOf(claim.key);
      await holder.acquire(claim);
      expect(await other.transfer({ ...claim, leaseTime: LONG }, successor.holder)).toBe(true);
      await expectMoreLeft(other, claim.key, SHORT, LONG);
      expect(await holder.extend([claim])).toEqual(['gone']);
      expect(await other.extend([successor])).toEqual(['extended']);
    });

    test('only from the holder is a lease transferred, and what nobody has is not', async () => {
      const [holder, stranger] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      expect(await stranger.transfer(claimOf(claim.key), randomUUID())).toBe(false);
      expect(await holder.extend([claim])).toEqual(['extended']);
      const free = claimOf(someKey());
      expect(await stranger.transfer(free, randomUUID())).toBe(false);
      expect(await holder.acquire(claimOf(free.key))).toMatchObject({ taken: true });
    });
  });

  describe(`${name}: once more after a lost reply`, () => {
    test('an acquire by the same holder is "taken" again, with its full time', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      expect(await holder.acquire(claim)).toMatchObject({ taken: true });
      expect(await holder.acquire({ ...claim, leaseTime: LONG })).toMatchObject({ taken: true });
      await expectMoreLeft(contender, claim.key, SHORT, LONG);
    });

    test('a second release is harmless, also to the successor', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      await holder.release(claim);
      await holder.release(claim);
      const successor = claimOf(claim.key);
      await contender.acquire(successor);
      await holder.release(claim);
      expect(await contender.extend([successor])).toEqual(['extended']);
    });

    test('a second yield is a yield', async () => {
      const holder = await make();
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      expect([await holder.yield(claim), await holder.yield(claim)]).toEqual([true, true]);
    });

    test('a second transfer to the same successor is a transfer, and one to another is none', async () => {
      const holder = await make();
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      expect(await holder.transfer(claim, 'successor')).toBe(true);
      expect(await holder.transfer(claim, 'successor')).toBe(true);
      expect(await holder.transfer(claim, 'another')).toBe(false);
      expect(await holder.extend([{ ...claim, holder: 'successor' }])).toEqual(['extended']);
    });
  });

  if (wakeUps) describeWakeUps(name, makeActor);
  describeOperators(name, makeActor);
}
