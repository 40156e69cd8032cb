import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { untilHolds } from '../support/eventually.js';
import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { leaseName, PREFIX, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';
import type { QuorumActor } from './quorum-actor.js';
import { holders, LEASE, quorumStage } from './quorum-stage.js';

/** With it a node's time is that of a command, two seconds. */
const LATE = 1_000_000;

describeWithGroup(
  'the votes of five nodes',
  () => startQuorum(5),
  (group) => {
    const { freeze, thaw, kill, connected } = quorumStage(group);
    /** So many nodes say that somebody else has it. */
    const give = (actor: QuorumActor, key: string, ...indexes: number[]) =>
      Promise.all(indexes.map((index) => actor.clients[index]?.set(leaseName(key), 'another', 'PX', 60_000)));

    test('votes of a look that lost are taken back, and wake nobody', async () => {
      const [actor, other] = [await connected(), await connected()];
      const key = someKey();
      const heard: unknown[] = [];
      const listeners = (await connected()).clients;
      for (const listener of listeners) {
        listener.on('message', (...message) => heard.push(message));
        await listener.subscribe(namesOf(PREFIX, key).wake);
      }
      await give(other, key, 0, 1, 2);
      expect(await actor.store.acquire(claimOf(key))).toMatchObject({ taken: false, holder: 'another' });
      for (const client of actor.clients) await client.ping();
      expect(await holders(actor, key)).toEqual(['another', 'another', 'another', null, null]);
      for (const listener of listeners) await listener.ping();
      expect(heard).toEqual([]);
    });

    test('where nobody has a majority the votes are split: nothing is left of them, and a look soon is asked for', async () => {
      const actor = await connected();
      const key = someKey();
      for (const [index, holder] of ['one', 'one', 'two'].entries()) {
        await actor.clients[index]?.set(leaseName(key), holder, 'PX', 60_000);
      }
      expect(await actor.store.acquire(claimOf(key))).toMatchObject({ taken: false, split: true });
      for (const client of actor.clients) await client.ping();
      expect(await holders(actor, key)).toEqual(['one', 'one', 'two', null, null]);
    });

    test('a transfer that a majority refuses leaves the successor nothing', async () => {
      const actor = await connected();
      const [claim, successor] = [claimOf(someKey()), claimOf(someKey())];
      for (const index of [0, 1]) await actor.clients[index]?.set(leaseName(claim.key), claim.holder, 'PX', 60_000);
      expect(await actor.store.transfer(claim, successor.holder)).toBe(false);
      for (const client of actor.clients) await client.ping();
      expect(await holders(actor, claim.key)).toEqual(Array(5).fill(null));
    });

    test('with two dead operators see, take and pass on keys, and with three they are told that nobody knows', async () => {
      const actor = await connected();
      const claim = claimOf(someKey());
      await actor.store.acquire(claim);
      await kill(1, 2);
      expect(await actor.store.inspect(claim.key)).toMatchObject({ holder: claim.holder });
      expect((await actor.store.list()).filter(({ key }) => key === claim.key)).toHaveLength(1);
      expect(await actor.store.transfer(claim, 'successor')).toBe(true);
      expect(await actor.store.force(claim.key, 'successor')).toBe(true);
      expect(await actor.store.inspect(claim.key)).toMatchObject({ holder: undefined });
      await kill(3);
      await untilHolds(() => expect(actor.store.inspect(claim.key)).rejects.toThrow('2 of 5 nodes answered'));
      await expect(actor.store.list()).rejects.toThrow('2 of 5 nodes answered');
      await expect(actor.store.force(claim.key, 'successor')).rejects.toThrow('2 of 5 nodes answered');
      await expect(actor.store.release(claim)).rejects.toThrow('2 of 5 nodes answered');
      const [extension] = await actor.store.extend([claim]);
      expect(extension).toBeInstanceOf(Error);
    });

    test('wake-ups are heard while a majority can send them', async () => {
      const [actor, holder] = [await connected(), await connected()];
      await kill(0, 1);
      const heard: unknown[] = [];
      const claim = claimOf(someKey());
      const watch = await actor.store.watch(claim.key, (wakeUp) => heard.push(wakeUp));
      expect(watch.hears).toBe(true);
      await holder.store.acquire(claim);
      await holder.store.release(claim);
      await untilHolds(() => expect(heard).toContain('look'));
      const unheard = () => actor.events.flatMap((event) => (event.type === 'subscriber-down' ? [event.node] : []));
      await untilHolds(() => expect(unheard().toSorted()).toEqual([0, 1]));
      await kill(2);
      await untilHolds(() => expect(watch.hears).toBe(false));
      await expect(actor.store.watch(someKey(), () => {})).rejects.toThrow();
    });

    test('one that is dead does not make a lease lost that nobody else can have', async () => {
      const actor = await connected();
      const claim = claimOf(someKey());
      await actor.store.acquire(claim);
      await untilHolds(async () => expect(await holders(actor, claim.key)).not.toContain(null));
      await Promise.all([3, 4].map((index) => actor.clients[index]?.flushall()));
      await kill(0);
      expect(await actor.store.extend([claim])).toEqual([expect.any(Error)]);
    });

    test('nodes keep a lease for longer than its holder believes in it', async () => {
      const actor = await connected();
      const key = someKey();
      const { lease } = await actor.acquire(key, { leaseTime: 60_000, renew: false });
      for (const client of actor.clients) await client.ping();
      const left = await Promise.all(actor.clients.map((client) => client.pttl(leaseName(key))));
      expect(Math.min(...left)).toBeGreaterThan(lease.remaining + 500);
    });

    test('one that asks again and again leaves room for one that waits', async () => {
      const [busy, patient] = [await connected({ passOnAfter: 0 }), await connected()];
      const key = someKey();
      let over = false;
      const callers = [1, 2, 3].map(async () => {
        while (!over) (await busy.acquire(key)).end();
      });
      await busy.store.yielding.reach(2);
      const [before] = [busy.store.looks.count];
      (await patient.acquire(key)).end();
      expect(busy.store.looks.count - before).toBeLessThan(500);
      over = true;
      await Promise.all(callers);
    });

    test('nothing waits for one that is late where the others agree', async () => {
      const actor = await connected();
      // What other tests have left is not listed before the late one has answered, where it could decide.
      for (const client of actor.clients) await client.flushall();
      const [held, mine, moved] = [claimOf(someKey(), LATE), claimOf(someKey(), LATE), claimOf(someKey(), LATE)];
      for (const claim of [mine, moved]) await actor.store.acquire(claim);
      await give(actor, held.key, 0, 1, 2, 3, 4);
      for (const client of actor.clients) await client.ping();
      freeze(4);
      expect(await actor.store.acquire(held)).toMatchObject({ taken: false, holder: 'another' });
      expect(await actor.store.extend([mine, moved])).toEqual(['extended', 'extended']);
      expect(await actor.store.extend([held])).toEqual(['gone']);
      expect(await actor.store.yield(mine)).toBe(true);
      expect(await actor.store.yield(held)).toBe(false);
      expect(await actor.store.transfer(moved, 'successor')).toBe(true);
      expect(await actor.store.transfer(held, 'successor')).toBe(false);
      expect(await actor.store.inspect(mine.key)).toMatchObject({ holder: mine.holder });
      expect((await actor.store.list()).filter(({ key }) => key === mine.key)).toHaveLength(1);
      expect(await actor.store.force(mine.key, mine.holder)).toBe(true);
      expect(await actor.store.force(mine.key, mine.holder)).toBe(false);
      // Its silence is not even known yet.
      expect(actor.events).toEqual([]);
    });

    test('a tie that it could end is given up in its time, and what it gives then is given back', async () => {
      const actor = await connected();
      const claim = claimOf(someKey(), LEASE);
      await give(actor, claim.key, 0, 1);
      freeze(4);
      expect(await actor.store.acquire(claim)).toMatchObject({ taken: false, split: true });
      thaw(4);
      for (let each = 0; each < 2; each++) await actor.clients[4]?.ping();
      expect(await holders(actor, claim.key)).toEqual(['another', 'another', null, null, null]);
    });

    test('a vote is not taken back by what gives back an earlier one, which comes late', async () => {
      const actor = await connected();
      const key = someKey();
      await kill(0, 1);
      freeze(4);
      const waiting = actor.acquire(key, { leaseTime: LEASE });
      await actor.store.looks.reach(2);
      thaw(4);
      const { lease } = await waiting;
      for (let each = 0; each < 5; each++) await Promise.all([2, 3, 4].map((index) => actor.clients[index]?.ping()));
      expect(await holders(actor, key, [2, 3, 4])).toEqual(Array(3).fill(lease.holder));
    });
  },
);
