import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Answer, Claim, LeaseStore } from '../../src/lease/store.js';
import { gate } from '../support/shop.js';
import { someKey } from './actors.js';

/** One client of the leases, as if it were a process of its own. */
export interface StoreActor {
  readonly store: LeaseStore;
  /** Ends its connections at once and for good, as a crash does. */
  kill(): void;
}

const LONG = 60_000;
/** Long enough for the few commands between two lines of a test, short enough to wait for its end. */
const SHORT = 250;

/**
 * What every store of leases keeps. `makeActor` gives a new client of the same leases each time, and closes it when
 * the test is over. The keys are new ones, so the server may be shared.
 */
export function describeStore(name: string, makeActor: () => StoreActor | Promise<StoreActor>): void {
  const make = async () => (await makeActor()).store;
  const claimOf = (key: string, leaseTime = LONG): Claim => ({ key, holder: randomUUID(), leaseTime });

  describe(`${name}: exclusion`, () => {
    test('a free key is taken, and the contender is told how long the lease still stands', async () => {
      const [holder, contender] = [await make(), await make()];
      const key = someKey();
      expect(await holder.acquire(claimOf(key))).toEqual({ taken: true });
      expectLeft(await contender.acquire(claimOf(key)), 0, LONG);
    });

    test('of many contenders at once exactly one takes the key', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, make));
      const key = someKey();
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) => (stores[index % 4] as LeaseStore).acquire(claimOf(key))),
      );
      expect(answers.filter(({ taken }) => taken)).toHaveLength(1);
    });

    test('one client is no reason: two holders of it exclude each other too', async () => {
      const store = await make();
      const key = someKey();
      await store.acquire(claimOf(key));
      expect(await store.acquire(claimOf(key))).toMatchObject({ taken: false });
    });

    test('another key is no contender', async () => {
      const [holder, bystander] = [await make(), await make()];
      const key = someKey();
      await holder.acquire(claimOf(key));
      expect(await bystander.acquire(claimOf(`${key}:size`))).toEqual({ taken: true });
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

    test('the lease of a client that was killed ends by itself', async () => {
      const holder = await makeActor();
      const contender = await make();
      const key = someKey();
      await holder.store.acquire(claimOf(key, SHORT));
      holder.kill();
      await takenAtTheEnd(contender, claimOf(key), SHORT);
    });
  });

  describe(`${name}: renewal`, () => {
    test('an extension gives the lease its full time again', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      expect(await holder.extend([{ ...claim, leaseTime: LONG }])).toEqual(['extended']);
      expectLeft(await contender.acquire(claimOf(claim.key)), SHORT, LONG);
    });

    test('an extension of what was never taken is told "gone", and takes nothing', async () => {
      const [stranger, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      expect(await stranger.extend([claim])).toEqual(['gone']);
      expect(await contender.acquire(claimOf(claim.key))).toEqual({ taken: true });
    });

    test('an extension of a lease that has ended is told "gone", and takes nothing', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      const successor = claimOf(claim.key, SHORT);
      await takenAtTheEnd(contender, successor, SHORT);
      await contender.release(successor);
      expect(await holder.extend([claim])).toEqual(['gone']);
      expect(await contender.acquire(claimOf(claim.key))).toEqual({ taken: true });
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
    test('a release frees the key', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      await holder.release(claim);
      expect(await contender.acquire(claimOf(claim.key))).toEqual({ taken: true });
    });

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

  describe(`${name}: once more after a lost reply`, () => {
    test('an acquire by the same holder is "taken" again, with its full time', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey(), SHORT);
      expect(await holder.acquire(claim)).toEqual({ taken: true });
      expect(await holder.acquire({ ...claim, leaseTime: LONG })).toEqual({ taken: true });
      expectLeft(await contender.acquire(claimOf(claim.key)), SHORT, LONG);
    });

    test('it is one lease: one release frees the key', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      await holder.acquire(claim);
      await holder.release(claim);
      expect(await contender.acquire(claimOf(claim.key))).toEqual({ taken: true });
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

    test('a second extension is an extension', async () => {
      const holder = await make();
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      expect(await holder.extend([claim, claim])).toEqual(['extended', 'extended']);
    });
  });

  describe(`${name}: wake-up`, () => {
    test('a release after the watch has resolved wakes, however soon it comes', async () => {
      const holder = await make();
      const claim = claimOf(someKey());
      for (let round = 0; round < 5; round++) {
        await holder.acquire(claim);
        // A new client each time: its connection for wake-ups does not even exist yet.
        const contender = await make();
        const woken = gate();
        const watch = await contender.watch(claim.key, woken.open);
        await holder.release(claim);
        await woken.opened;
        watch.close();
      }
    });

    test('every watcher of the key is woken, and no watcher of another', async () => {
      const [holder, contender, other, bystander] = [await make(), await make(), await make(), await make()];
      const [claim, sign] = [claimOf(someKey()), claimOf(someKey())];
      await holder.acquire(claim);
      await holder.acquire(sign);
      const woken = [gate(), gate(), gate()] as const;
      await contender.watch(claim.key, woken[0].open);
      await contender.watch(claim.key, woken[1].open);
      await other.watch(claim.key, woken[2].open);
      const heard: string[] = [];
      const barrier = gate();
      await bystander.watch(sign.key, () => {
        heard.push('its own');
        barrier.open();
      });
      await holder.release(claim);
      await Promise.all(woken.map(({ opened }) => opened));
      await holder.release(sign);
      await barrier.opened;
      expect(heard).toEqual(['its own']);
    });

    test('after close nothing wakes any more, and closing twice is nothing', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      let heard = 0;
      const closed = await contender.watch(claim.key, () => heard++);
      const barrier = gate();
      await contender.watch(claim.key, barrier.open);
      closed.close();
      closed.close();
      await holder.release(claim);
      await barrier.opened;
      expect(heard).toBe(0);
    });

    test('one who listens no more does not make the others deaf', async () => {
      const [holder, contender] = [await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      const first = await contender.watch(claim.key, () => {});
      const woken = gate();
      const second = await contender.watch(claim.key, woken.open);
      first.close();
      await holder.release(claim);
      await woken.opened;
      second.close();
      // And the next one on the channel that was just left hears again.
      await holder.acquire(claim);
      const again = gate();
      await contender.watch(claim.key, again.open);
      await holder.release(claim);
      await again.opened;
    });

    test('a release by somebody who does not hold it wakes nobody', async () => {
      const [holder, stranger, contender] = [await make(), await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      let heard = 0;
      const woken = gate();
      await contender.watch(claim.key, () => {
        heard++;
        woken.open();
      });
      await stranger.release(claimOf(claim.key));
      await holder.release(claim);
      await woken.opened;
      expect(heard).toBe(1);
    });

    test('after the store is closed its watchers hear nothing', async () => {
      const [holder, contender, bystander] = [await make(), await make(), await make()];
      const claim = claimOf(someKey());
      await holder.acquire(claim);
      let heard = 0;
      const watch = await contender.watch(claim.key, () => heard++);
      const barrier = gate();
      await bystander.watch(claim.key, barrier.open);
      await contender.close();
      await holder.release(claim);
      await barrier.opened;
      expect(heard).toBe(0);
      watch.close();
    });
  });
}

function expectLeft(answer: Answer, above: number, upTo: number): void {
  expect(answer).toMatchObject({ taken: false });
  const { expiresIn } = answer as { expiresIn: number };
  expect(expiresIn).toBeGreaterThan(above);
  expect(expiresIn).toBeLessThanOrEqual(upTo);
}

/** Asks again when the store says that the lease will have ended: nothing else announces it. */
async function takenAtTheEnd(store: LeaseStore, claim: Claim, atMost: number): Promise<void> {
  for (;;) {
    const answer = await store.acquire(claim);
    if (answer.taken) return;
    expect(answer.expiresIn).toBeLessThanOrEqual(atMost);
    await new Promise((resolve) => setTimeout(resolve, answer.expiresIn + 1));
  }
}
