import { expect, test } from 'vitest';
import { LockUnavailableError } from '../../src/base/errors.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import type { LeaseStore } from '../../src/waiting/store.js';
import { untilHolds } from '../support/eventually.js';
import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { FOR_EVER, leaseName, someKey } from '../waiting/actors.js';
import { ObservedStore } from '../waiting/observed-store.js';
import type { QuorumActor } from './quorum-actor.js';
import { holders, LEASE, quorumStage } from './quorum-stage.js';

/** A busy machine may make a healthy node late once. */
const ofNode = ({ events }: QuorumActor, index: number) =>
  events.filter((event) => 'node' in event && event.node === index);

describeWithGroup(
  'five nodes, some of which fail',
  () => startQuorum(5),
  (group) => {
    const { freeze, thaw, kill, connected, newcomer } = quorumStage(group);

    async function worksBetween(holder: QuorumActor, contender: QuorumActor): Promise<void> {
      const key = someKey();
      const turn = await holder.acquire(key, { leaseTime: LEASE });
      const before = contender.store.answers.count;
      const waiting = contender.acquire(key, { leaseTime: LEASE });
      await contender.store.answers.reach(before + 2);
      const renewals = holder.store.extended.count;
      await holder.store.extended.reach(renewals + 2);
      expect(turn.lease.loss).toBeUndefined();
      turn.end();
      (await waiting).end();
    }

    test('a value of other software on a node is no failure of that node', async () => {
      const actor = await connected();
      const [key, other] = [someKey(), someKey()];
      const [node] = actor.clients;
      await node?.hset(leaseName(key), 'field', 'value');
      const turns = [await actor.acquire(key), await actor.acquire(other)];
      await untilHolds(async () => expect(await holders(actor, other)).toEqual(Array(5).fill(turns[1]?.lease.holder)));
      expect(ofNode(actor, 0)).toEqual([]);
      await node?.del(leaseName(key));
      for (const turn of turns) turn.end();
    });

    test.each([
      ['dead', 'dead'],
      ['dead', 'frozen'],
      ['frozen', 'frozen'],
    ])('two of them %s and %s: leases are taken, renewed and handed over', async (...hows) => {
      const [holder, contender] = [await connected(), await connected()];
      for (const [index, how] of hows.entries()) {
        if (how === 'dead') await kill(index * 2);
        else freeze(index * 2);
      }
      await worksBetween(holder, contender);
      await worksBetween(newcomer(), contender);
    });

    test('two dead and one frozen: refused, with the reason of each; and served once that one is back', async () => {
      const actor = await connected();
      await kill(0, 1);
      freeze(3);
      const refused = actor.acquire(someKey(), { waitTime: 600 });
      await expect(refused).rejects.toBeInstanceOf(LockUnavailableError);
      const silent = 'node 3: it did not answer (a command )?within \\d+ ms; the client\'s status is "ready"';
      const cause = ['2 of 5 nodes answered', 'node 0: ', 'node 1: ', silent].join('.*');
      await expect(refused).rejects.toMatchObject({ cause: { message: expect.stringMatching(new RegExp(cause)) } });
      const patient = actor.acquire(someKey(), { waitTime: FOR_EVER });
      await actor.store.looks.reach(actor.store.looks.count + 2);
      thaw(3);
      (await patient).end();
    });

    test('a lease outlives two nodes, and is lost only where no majority can keep it any more', async () => {
      const actor = await connected();
      const turn = await actor.acquire(someKey(), { leaseTime: LEASE });
      await kill(0, 1);
      const renewals = actor.store.extended.count;
      await actor.store.extended.reach(renewals + 3);
      expect(turn.lease.loss).toBeUndefined();
      await kill(2);
      await untilHolds(() => expect(turn.lease.loss).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' }));
      turn.end();
    });

    test('a node that failed is left out, is asked now and then, and comes back', async () => {
      const observed: ObservedStore[] = [];
      const wrap = (stores: LeaseStore[]) => {
        observed.push(...stores.map((store) => new ObservedStore(store)));
        return [...observed];
      };
      const actor = await connected({ wrap });
      const types = () => ofNode(actor, 2).map(({ type }) => type);
      freeze(2);
      const turn = await actor.acquire(someKey(), { leaseTime: LEASE });
      await untilHolds(() => expect(types()).toEqual(['node-down']));
      expect(ofNode(actor, 2)[0]).toMatchObject({ error: { message: expect.stringContaining('did not answer') } });
      const before = observed[2]?.looks.count;
      for (let each = 0; each < 20; each++) await actor.release(await actor.acquire(someKey(), { leaseTime: LEASE }));
      expect(observed[2]?.looks.count).toBe(before);
      thaw(2);
      await untilHolds(async () => {
        await actor.release(await actor.acquire(someKey(), { leaseTime: LEASE }));
        expect(types()).toEqual(['node-down', 'node-back']);
      });
      turn.end();
    });

    test('a node whose scripts are gone and whose answer comes late is not left with a lease that was released', async () => {
      const actor = await connected();
      const key = someKey();
      for (const client of actor.clients) await client.script('FLUSH');
      // So the release is executed at once, and the acquire when its text has been sent.
      await actor.clients[3]?.script('LOAD', scripts.release.lua);
      freeze(3);
      // Long, and so the node is still awaited when it thaws.
      const turn = await actor.acquire(key, { leaseTime: 600_000 });
      await actor.release(turn);
      thaw(3);
      // Behind everything that was on its way, and behind what its answers have caused. On each node, because a release
      // resolves with the answers of most of them.
      for (let each = 0; each < 5; each++) await Promise.all(actor.clients.map((client) => client.ping()));
      expect(await holders(actor, key)).toEqual(Array(5).fill(null));
    });
  },
);
