import { expect, test } from 'vitest';
import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { leaseName, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';
import type { QuorumActor } from './quorum-actor.js';
import { holders, LEASE, quorumStage } from './quorum-stage.js';

describeWithGroup(
  'five nodes, one of which is late',
  () => startQuorum(5),
  (group) => {
    const { freeze, thaw, kill, connected } = quorumStage(group);
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
