import { expect, test } from 'vitest';
import { now, sleep } from '../../../src/base/clock.js';
import type { LeaseStore } from '../../../src/lease/store.js';
import * as scripts from '../../../src/redis/scripts.generated.js';
import { untilHolds } from '../../support/eventually.js';
import { startQuorum } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { leaseName, someKey } from '../actors.js';
import { claimOf } from '../claims.js';
import { ObservedStore } from '../queue/observed-store.js';
import type { QuorumActor } from './quorum-actor.js';
import { holders, quorumStage } from './quorum-stage.js';

describeWithGroup(
  'five nodes, one of which is late',
  () => startQuorum(5),
  (group) => {
    const { freeze, thaw, kill, restart, connected } = quorumStage(group);
    /** Its time is that of a command, two seconds. */
    const someClaim = (key = someKey()) => ({ ...claimOf(key), leaseTime: 1_000_000 });
    /** So many nodes say that somebody else has it. */
    const give = (actor: QuorumActor, key: string, ...indexes: number[]) =>
      Promise.all(indexes.map((index) => actor.clients[index]?.set(leaseName(key), 'another', 'PX', 60_000)));

    test('nothing waits for it where the others agree', async () => {
      const actor = await connected();
      const [held, mine, moved] = [someClaim(), someClaim(), someClaim()];
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

    test('a tenth of a second is not late, however short the lease', async () => {
      const slowly = (store: LeaseStore) => {
        const acquire = store.acquire.bind(store);
        return Object.assign(store, {
          acquire: async (...asked: Parameters<typeof acquire>) => sleep(120).then(() => acquire(...asked)),
        });
      };
      const actor = await connected({ wrap: (nodes) => nodes.map(slowly) });
      expect(await actor.store.acquire(claimOf(someKey(), 2_000))).toMatchObject({ taken: true });
      expect(actor.events).toEqual([]);
    });

    test('a transfer that was given up, and that servers without its script execute late, leaves nothing', async () => {
      const actor = await connected();
      const [claim, successor] = [claimOf(someKey(), 10_000), claimOf(someKey())];
      for (const [index, client] of actor.clients.entries()) {
        await client.set(leaseName(claim.key), claim.holder, 'PX', 60_000);
        await client.script('FLUSH');
        for (const script of [scripts.acquire, scripts.release]) await client.script('LOAD', script.lua);
        // Longer than its time limit, and shorter than that of a command.
        if (index > 0) await client.client('PAUSE', 900, 'ALL');
      }
      await expect(actor.store.transfer(claim, successor.holder)).rejects.toThrow('1 of 5 nodes answered');
      await actor.store.release({ ...claim, holder: successor.holder });
      for (const client of actor.clients) await client.ping();
      await untilHolds(async () => expect(await holders(actor, claim.key)).not.toContain(successor.holder));
    });

    test('a tie that it could end is given up soon, and what it gives then is given back', async () => {
      const actor = await connected();
      const claim = someClaim();
      await give(actor, claim.key, 0, 1);
      freeze(4);
      const since = now();
      expect(await actor.store.acquire(claim)).toMatchObject({ taken: false, split: true });
      expect(now() - since).toBeLessThan(1_500);
      expect(actor.events).toEqual([]);
      thaw(4);
      for (let each = 0; each < 2; each++) await actor.clients[4]?.ping();
      expect(await holders(actor, claim.key)).toEqual(['another', 'another', null, null, null]);
    });

    test('what a later look has taken is not given back for an earlier one', async () => {
      const actor = await connected();
      const claim = someClaim();
      await give(actor, claim.key, 0, 1);
      freeze(4);
      expect(await actor.store.acquire(claim)).toMatchObject({ split: true });
      await Promise.all([0, 1].map((index) => actor.clients[index]?.del(leaseName(claim.key))));
      expect(await actor.store.acquire(claim)).toMatchObject({ taken: true });
      thaw(4);
      for (let each = 0; each < 2; each++) await actor.clients[4]?.ping();
      expect(await holders(actor, claim.key)).toEqual(Array(5).fill(claim.holder));
    });

    test('where it has forgotten a lease that is given back meanwhile, it is not given it again', async () => {
      const observed: ObservedStore[] = [];
      const wrap = (stores: LeaseStore[]) => {
        observed.push(...stores.map((store) => new ObservedStore(store)));
        return observed;
      };
      const actor = await connected({ wrap });
      const claim = someClaim();
      await actor.store.acquire(claim);
      await actor.clients[4]?.del(leaseName(claim.key));
      freeze(4);
      expect(await actor.store.extend([claim])).toEqual(['extended']);
      await actor.store.release(claim);
      thaw(4);
      await observed[4]?.extended.reach(1);
      for (let each = 0; each < 2; each++) await actor.clients[4]?.ping();
      expect(await holders(actor, claim.key)).toEqual(Array(5).fill(null));
    });

    test('one whose client has lost its connection is left out at once, and comes back', async () => {
      const actor = await connected();
      const claim = someClaim();
      await give(actor, claim.key, 0, 1);
      await kill(4);
      await untilHolds(() => expect(actor.clients[4]?.status).toBe('reconnecting'));
      expect(await actor.store.acquire(claim)).toMatchObject({ split: true });
      expect(actor.events).toEqual([
        { type: 'node-down', node: 4, error: new Error('it was not asked; the client\'s status is "reconnecting"') },
      ]);
      await restart(4);
      await untilHolds(async () => {
        await actor.store.inspect(claim.key);
        expect(actor.events).toContainEqual({ type: 'node-back', node: 4 });
      });
    });
  },
);
