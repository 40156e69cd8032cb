import { afterEach, expect, test, vi } from 'vitest';
import { now } from '../../src/base/clock.js';
import { LockUnavailableError } from '../../src/base/errors.js';
import type { LeaseStore } from '../../src/lease/store.js';
import { namesOf } from '../../src/redis/keys.js';
import { release } from '../../src/redis/scripts.generated.js';
import { type RedisServer, startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { FOR_EVER, leaseName, PREFIX, someKey } from './actors.js';
import { claimOf } from './claims.js';
import { ObservedStore } from './observed-store.js';
import { QuorumActor } from './quorum-actor.js';

/** A node may take a twentieth of it to answer. */
const LEASE = 2_000;
const PATIENT = { timeout: 10_000, interval: 20 };

describeWithGroup(
  'five nodes, some of which fail',
  () => startQuorum(5),
  (group) => {
    afterEach(async () => {
      for (const node of group().nodes) {
        node.thaw();
        if (!(await isUp(node))) await node.start();
      }
    });
    const nodes = (...indexes: number[]) => indexes.map((index) => group().nodes[index] as RedisServer);
    const kill = (...indexes: number[]) => Promise.all(nodes(...indexes).map((node) => node.killHard()));
    const restart = (...indexes: number[]) => Promise.all(nodes(...indexes).map((node) => node.start()));

    async function connected(options = {}): Promise<QuorumActor> {
      const actor = new QuorumActor(group(), options);
      await Promise.all(actor.clients.map((client) => client.ping()));
      return actor;
    }

    /** Who has the key on each node, as the node says. */
    const holders = ({ clients }: QuorumActor, key: string) =>
      Promise.all(clients.map((client) => client.get(leaseName(key))));

    async function worksBetween(holder: QuorumActor, contender: QuorumActor): Promise<void> {
      const key = someKey();
      const turn = await holder.acquire(key, { leaseTime: LEASE });
      const before = contender.store.answers.count;
      const waiting = contender.acquire(key, { leaseTime: LEASE });
      await contender.store.answers.reach(before + 2);
      const renewals = holder.store.extended.count;
      await holder.store.extended.reach(renewals + 2);
      expect(turn.lease.loss).toBeUndefined();
      turn.leave();
      (await waiting).leave();
    }

    test.each([
      ['dead', 'dead'],
      ['dead', 'frozen'],
      ['frozen', 'frozen'],
    ])('two of them %s and %s: leases are taken, renewed and handed over', async (...hows) => {
      const [holder, contender] = [await connected(), await connected()];
      for (const [index, how] of hows.entries()) {
        const node = nodes(index * 2)[0];
        if (how === 'dead') await node?.killHard();
        else node?.freeze();
      }
      await worksBetween(holder, contender);
      await worksBetween(await newcomer(), contender);
    });
    const newcomer = async () => new QuorumActor(group());

    test('two dead and one frozen: two votes are no majority; once it thaws they go on', async () => {
      const actor = await connected();
      await kill(0, 3);
      nodes(1)[0]?.freeze();
      const key = someKey();
      const refused = actor.acquire(key, { waitTime: 600 });
      await expect(refused).rejects.toBeInstanceOf(LockUnavailableError);
      await expect(refused).rejects.toMatchObject({
        cause: { message: expect.stringContaining('2 of 5 nodes answered') },
      });
      const patient = actor.acquire(key, { waitTime: FOR_EVER });
      await actor.store.looks.reach(actor.store.looks.count + 2);
      nodes(1)[0]?.thaw();
      (await patient).leave();
    });

    test('three dead: refused within the wait time, with the reason; and they come back by themselves', async () => {
      const actor = await connected();
      await kill(0, 2, 4);
      const since = now();
      const refused = actor.acquire(someKey(), { waitTime: 500 });
      await expect(refused).rejects.toBeInstanceOf(LockUnavailableError);
      // A node's own time, were it waited for, would be three seconds.
      expect(now() - since).toBeLessThan(2_000);
      const patient = actor.acquire(someKey());
      await restart(2);
      (await patient).leave();
    });

    test('a lease outlives two nodes, and is lost only where no majority can keep it any more', async () => {
      const actor = await connected();
      const turn = await actor.acquire(someKey(), { leaseTime: LEASE });
      await kill(0, 1);
      const renewals = actor.store.extended.count;
      await actor.store.extended.reach(renewals + 3);
      expect(turn.lease.loss).toBeUndefined();
      await kill(2);
      await vi.waitFor(() => expect(turn.lease.loss).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' }), PATIENT);
      turn.leave();
    });

    test('a frozen node is not waited for where the others agree', async () => {
      const actor = await connected();
      nodes(2)[0]?.freeze();
      // Its time would be longer than this test.
      const turn = await actor.acquire(someKey(), { leaseTime: 1_000_000 });
      // Its silence is not even known yet.
      expect(actor.events).toEqual([]);
      turn.leave();
      await actor.store.released.settled();
    });

    test('a node that failed is left out, is asked now and then, and comes back', async () => {
      const observed: ObservedStore[] = [];
      const wrap = (stores: LeaseStore[]) => {
        observed.push(...stores.map((store) => new ObservedStore(store)));
        return [...observed];
      };
      const actor = await connected({ wrap });
      const types = () => actor.events.map(({ type }) => type);
      nodes(2)[0]?.freeze();
      const turn = await actor.acquire(someKey(), { leaseTime: LEASE });
      await vi.waitFor(() => expect(types()).toEqual(['node-down']), PATIENT);
      expect(actor.events[0]).toMatchObject({ node: 2, error: { message: expect.stringContaining('did not answer') } });
      const before = observed[2]?.looks.count;
      for (let each = 0; each < 20; each++) await actor.release(await actor.acquire(someKey(), { leaseTime: LEASE }));
      expect(observed[2]?.looks.count).toBe(before);
      // What it may have is given back all the same, nothing else is sent.
      expect(observed[2]?.released.count).toBe(0);
      nodes(2)[0]?.thaw();
      await vi.waitFor(async () => {
        await actor.release(await actor.acquire(someKey(), { leaseTime: LEASE }));
        expect(types()).toEqual(['node-down', 'node-back']);
      }, PATIENT);
      // Its renewal brings the lease to the node, if the freeze has not.
      turn.leave();
    });

    test('a node that lost its memory gets the lease again at the next renewal', async () => {
      const actor = await connected();
      const key = someKey();
      const turn = await actor.acquire(key, { leaseTime: LEASE });
      const mine = Array(5).fill(turn.lease.holder);
      await vi.waitFor(async () => expect(await holders(actor, key)).toEqual(mine), PATIENT);
      await kill(1, 4);
      await restart(1, 4);
      await vi.waitFor(async () => expect(await holders(actor, key)).toEqual(mine), PATIENT);
      // So another two may fail.
      await kill(0, 2);
      const renewals = actor.store.extended.count;
      await actor.store.extended.reach(renewals + 2);
      expect(turn.lease.loss).toBeUndefined();
      await actor.release(turn);
    });

    test('what most nodes have forgotten is lost, and not taken again behind the back of its holder', async () => {
      const actor = await connected();
      const key = someKey();
      const turn = await actor.acquire(key, { leaseTime: LEASE });
      await vi.waitFor(async () => expect(await holders(actor, key)).not.toContain(null), PATIENT);
      await kill(0, 1, 2);
      await restart(0, 1, 2);
      await vi.waitFor(() => expect(turn.lease.loss).toBeDefined(), PATIENT);
      expect((await holders(actor, key)).slice(0, 3)).toEqual([null, null, null]);
      await actor.release(turn);
      expect(await holders(actor, key)).toEqual(Array(5).fill(null));
    });

    test('nobody else has the key while two nodes crash, come back empty, and the other two crash', async () => {
      const [holder, contender] = [await connected(), await connected()];
      const key = someKey();
      const turn = await holder.acquire(key, { leaseTime: LEASE });
      let taken = false;
      const waiting = contender.acquire(key, { leaseTime: LEASE }).then((next) => {
        taken = true;
        return next;
      });
      for (const two of [
        [0, 1],
        [2, 3],
        [4, 0],
      ] as const) {
        await kill(...two);
        await restart(...two);
        const mine = Array(5).fill(turn.lease.holder);
        await vi.waitFor(async () => expect(await holders(holder, key)).toEqual(mine), PATIENT);
      }
      expect([taken, turn.lease.loss]).toEqual([false, undefined]);
      turn.leave();
      (await waiting).leave();
    });

    test('a node whose script is gone and whose answer comes late is not left with a lease that was released', async () => {
      const actor = await connected();
      const key = someKey();
      for (const client of actor.clients) await client.script('FLUSH');
      // So that only the acquire is sent once more, behind the release that should undo it.
      await actor.clients[3]?.script('LOAD', release.lua);
      nodes(3)[0]?.freeze();
      const turn = await actor.acquire(key, { leaseTime: LEASE });
      await actor.release(turn);
      nodes(3)[0]?.thaw();
      // Behind everything that was on its way, and behind what its answers have caused.
      for (let each = 0; each < 5; each++) await actor.clients[3]?.ping();
      expect(await holders(actor, key)).toEqual(Array(5).fill(null));
    });

    test('a node that was left out before the release has nothing left either, once it thaws', async () => {
      const actor = await connected();
      const key = someKey();
      nodes(3)[0]?.freeze();
      const turn = await actor.acquire(key, { leaseTime: LEASE, renew: false });
      await vi.waitFor(() => expect(actor.events).toMatchObject([{ type: 'node-down', node: 3 }]), PATIENT);
      await actor.release(turn);
      nodes(3)[0]?.thaw();
      await actor.clients[3]?.ping();
      expect(await holders(actor, key)).toEqual(Array(5).fill(null));
    });

    test('votes of a look that lost are taken back, and wake nobody', async () => {
      const [actor, other] = [await connected(), await connected()];
      const key = someKey();
      const heard: unknown[] = [];
      const listeners = (await connected()).clients;
      for (const listener of listeners) {
        listener.on('message', (...message) => heard.push(message));
        await listener.subscribe(namesOf(PREFIX, key).wake);
      }
      for (const index of [0, 1, 2]) await other.clients[index]?.set(leaseName(key), 'another', 'PX', 60_000);
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
      await expect(actor.store.inspect(claim.key)).rejects.toThrow('2 of 5 nodes answered');
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
      await vi.waitFor(() => expect(heard).toContain('look'), PATIENT);
      await kill(2);
      await vi.waitFor(() => expect(watch.hears).toBe(false), PATIENT);
      await expect(actor.store.watch(someKey(), () => {})).rejects.toThrow();
    });

    test('what one node alone says is heard, too', async () => {
      const actor = await connected();
      const key = someKey();
      const heard: unknown[] = [];
      await actor.store.watch(key, (wakeUp) => heard.push(wakeUp));
      await actor.clients[4]?.publish(namesOf(PREFIX, key).wake, 'look');
      await vi.waitFor(() => expect(heard).toEqual(['look']), PATIENT);
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
      const [busy, patient] = [await connected(), await connected()];
      const key = someKey();
      let over = false;
      const callers = [1, 2, 3].map(async () => {
        while (!over) (await busy.acquire(key)).leave();
      });
      await busy.store.yielding.reach(2);
      const [before] = [busy.store.looks.count];
      (await patient.acquire(key)).leave();
      expect(busy.store.looks.count - before).toBeLessThan(500);
      over = true;
      await Promise.all(callers);
    });

    async function isUp({ port }: RedisServer): Promise<boolean> {
      const { answersPing } = await import('../support/servers/redis-ping.js');
      return await answersPing(port).then(
        () => true,
        () => false,
      );
    }
  },
);
