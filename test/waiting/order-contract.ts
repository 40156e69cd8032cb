import { describe, expect, test } from 'vitest';
import { MOST_WAITERS } from '../../src/waiting/store.js';
import { claimOf, expectLeft, LONG, type MakeActor, SHORT } from './claims.js';
import { queued as queuedWith, Waiter } from './waiter.js';

/** For how long a key is kept for the one whose turn it is. */
const OFFER = 1_000;
/** Of a holder behind whom others enter the queue, also on a busy machine. */
const QUEUED = 1_000;

/** What a store with a queue keeps beside the contract of every store. */
export function describeOrder(name: string, makeActor: MakeActor): void {
  const make = async () => (await makeActor()).store;
  const queued = (count: number, leaseTime = LONG) => queuedWith(makeActor, count, leaseTime);

  describe(`${name}: order`, () => {
    test('first come, first served, and each waits until it is its turn', async () => {
      const { holder, first, second, third } = await queued(3);
      let before: { release(): Promise<void> } = holder;
      for (const [waiter, others] of [
        [first, [second, third]],
        [second, [third]],
        [third, []],
      ] as const) {
        const told = [waiter, ...others].map((each) => each.next());
        await before.release();
        expect(await Promise.all(told)).toEqual([waiter, ...others].map(() => waiter.turn()));
        for (const other of others) expect(await other.look()).toBe(false);
        expect(await waiter.look()).toBe(true);
        before = waiter;
      }
    });

    test('an offer is confirmed by taking it, and the lease has its full time then', async () => {
      const { key, holder, first, second } = await queued(2);
      await holder.release();
      const stranger = await make();
      expectLeft(await stranger.acquire(claimOf(key)), 0, OFFER);
      expect(await first.look()).toBe(true);
      expectLeft(await stranger.acquire(claimOf(key)), OFFER, LONG);
      expect(await second.look()).toBe(false);
    });

    test('a hint tells who is next, and gives the key to nobody', async () => {
      const { holder, first, second } = await queued(2);
      const told = [first.next(), second.next()];
      await holder.store.hint?.(holder.claim);
      const hint = { hintedTo: first.claim.holder };
      expect(await Promise.all(told)).toEqual([hint, hint]);
      expect(await first.look()).toBe(false);
      expect(await second.look()).toBe(false);
    });

    test('one that was killed is skipped at once', async () => {
      const { holder, actors, first, second } = await queued(2);
      await actors[0]?.kill();
      const told = second.next();
      await holder.release();
      expect(await told).toEqual(second.turn());
      expect(await second.look()).toBe(true);
      expect(first.heard).toEqual([]);
    });

    test('one that is frozen, and still subscribed, costs the others an offer and no more', async () => {
      const { holder, first, second } = await queued(2);
      const told = second.next();
      await holder.release();
      expect(await told).toEqual(first.turn());
      expect(await second.look()).toBe(false);
      // It never comes for it.
      await ended(OFFER);
      expect(await second.look()).toBe(true);
    });

    test('one that gives up is skipped', async () => {
      const { holder, first, second } = await queued(2);
      await first.release();
      const told = [first.next(), second.next()];
      await holder.release();
      expect(await Promise.all(told)).toEqual([second.turn(), second.turn()]);
      expect(await second.look()).toBe(true);
    });

    test('one that gives up when it was just made an offer passes it on', async () => {
      const { holder, first, second } = await queued(2);
      await holder.release();
      expect(await second.next()).toEqual(first.turn());
      const told = second.next();
      await first.release();
      expect(await told).toEqual(second.turn());
      expect(await second.look()).toBe(true);
    });

    test('who looks at a free key with a queue makes the offer to the first, instead of taking it', async () => {
      const { key, first, second } = await queued(2, QUEUED);
      const told = [first.next(), second.next()];
      await ended(QUEUED);
      expectLeft(await (await make()).acquire(claimOf(key)), 0, OFFER);
      expect(await Promise.all(told)).toEqual([first.turn(), first.turn()]);
      expect(await first.look()).toBe(true);
    });

    test('the first itself takes a free key at its look, whoever waits behind it', async () => {
      const { first, second } = await queued(2, QUEUED);
      await ended(QUEUED);
      expect(await first.look()).toBe(true);
      expect(await second.look()).toBe(false);
    });

    test('entering twice is one place', async () => {
      const { key, holder, first, second } = await queued(2);
      expect(await first.look()).toBe(false);
      expect((await holder.store.inspect(key)).waiting).toBe(2);
      await holder.release();
      expect(await first.look()).toBe(true);
      await second.next();
      const told = second.next();
      await first.release();
      expect(await told).toEqual(second.turn());
    });

    test('a place is kept for as long as was asked for, and is gone then', async () => {
      const { key, holder } = await queued(0);
      const { store } = await makeActor();
      await store.watch(key, () => {});
      await store.acquire(claimOf(key), { enter: SHORT });
      expect((await holder.store.inspect(key)).waiting).toBe(1);
      await ended(SHORT);
      expect((await holder.store.inspect(key)).waiting).toBe(0);
    });

    test('a yield passes the key on to who waits, and the one that yielded has it no more', async () => {
      const { holder, first, second } = await queued(2);
      const told = second.next();
      expect(await holder.store.yield(holder.claim)).toBe(false);
      expect(await told).toEqual(first.turn());
      expect(await first.look()).toBe(true);
      expect(await holder.store.extend([holder.claim])).toEqual(['gone']);
      expect(await second.look()).toBe(false);
    });

    test('a yield where only the dead wait keeps the lease', async () => {
      const { holder, actors } = await queued(1);
      await actors[0]?.kill();
      expect(await holder.store.yield(holder.claim)).toBe(true);
    });

    test('a force passes the key on to the first', async () => {
      const { key, holder, first, second } = await queued(2);
      const told = second.next();
      expect(await holder.store.force(key, holder.claim.holder)).toBe(true);
      expect(await told).toEqual(first.turn());
      expect(await first.look()).toBe(true);
    });

    test('a renewal that finds nothing makes the offer to the first that waits', async () => {
      const { holder, first, second } = await queued(2, QUEUED);
      const told = [first.next(), second.next()];
      await ended(QUEUED);
      expect(await holder.store.extend([holder.claim])).toEqual(['gone']);
      expect(await Promise.all(told)).toEqual([first.turn(), first.turn()]);
    });

    test('a renewal that finds nothing at all wakes everybody, and who looks takes the key or a new place', async () => {
      const { key, holder, actors, first, second } = await queued(2);
      await actors[0]?.forget(key);
      const told = [first.next(), second.next()];
      expect(await holder.store.extend([holder.claim])).toEqual(['gone']);
      expect(await Promise.all(told)).toEqual(['look', 'look']);
      expect(await second.look()).toBe(true);
      expect(await first.look()).toBe(false);
      const turn = first.next();
      await second.release();
      expect(await turn).toEqual(first.turn());
    });

    test('inspect and list tell how many wait, also where nobody has the key', async () => {
      const { key, holder } = await queued(3, QUEUED);
      expect(await holder.store.inspect(key, MOST_WAITERS)).toMatchObject({ holder: holder.claim.holder, waiting: 3 });
      await ended(QUEUED);
      const state = { key, holder: undefined, expiresIn: 0, waiting: 3, waiters: Array(3).fill(undefined) };
      expect(await holder.store.inspect(key, MOST_WAITERS)).toEqual(state);
      expect((await holder.store.list()).filter((each) => each.key === key)).toEqual([state]);
    });

    test('inspect and list name those who wait in their order, whatever they are called', async () => {
      const names = ['web-1:4711', 'worker 7 of 12', `'" .. KEYS[1] %s .- {} ]]\\`, 'büro-東京-🔒', '5000'];
      const { key, holder } = await queued(0);
      const waiters: Waiter[] = [];
      for (const name of names) waiters.push(await Waiter.enter(await makeActor(name), key));
      expect(await holder.store.inspect(key, MOST_WAITERS)).toMatchObject({ waiting: 5, waiters: names });
      const [listed] = (await holder.store.list()).filter((each) => each.key === key);
      expect(listed).toMatchObject({ waiting: 5, waiters: names });
      // One that gives up in the middle takes its own name alone.
      await waiters[1]?.release();
      await holder.release();
      expect(await waiters[0]?.next()).toEqual(waiters[0]?.turn());
      expect(await waiters[0]?.look()).toBe(true);
      const left = names.slice(2);
      expect(await holder.store.inspect(key, MOST_WAITERS)).toMatchObject({
        process: names[0],
        waiting: 3,
        waiters: left,
      });
      for (const waiter of waiters) await waiter.release();
      expect(await holder.store.inspect(key, MOST_WAITERS)).toMatchObject({ waiting: 0 });
    });

    test('no more than a hundred are named, and all are counted', async () => {
      const { key, holder } = await queued(0);
      const { store } = await makeActor('crowd');
      await Promise.all(Array.from({ length: 103 }, () => store.acquire(claimOf(key), { enter: LONG })));
      const { waiting, waiters } = await holder.store.inspect(key, MOST_WAITERS);
      expect({ waiting, waiters }).toEqual({ waiting: 103, waiters: Array(100).fill('crowd') });
    });
  });
}

/** Nothing announces the end of a time that Redis keeps. */
function ended(time: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, time + 10);
  });
}
