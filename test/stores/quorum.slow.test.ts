import { describe, expect, test } from 'vitest';
import { anyPermit, permitName } from '../../src/base/permits.js';
import { startQuorum } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { leaseName, queueName, someKey } from '../waiting/actors.js';
import { describeStore } from '../waiting/store-contract.js';
import { polled, QuorumActor, type QuorumOptions } from './quorum-actor.js';
import { overUnevenLine } from './uneven-line.js';

for (const count of [3, 5]) {
  describeWithGroup(
    `a quorum of ${count}`,
    () => startQuorum(count),
    (group) => {
      const actor = async (options = {}) => {
        const made = new QuorumActor(group(), options);
        // A node has a fifth of a short lease to answer, and on a busy machine a connection takes longer.
        await Promise.all(made.clients.map((client) => client.ping()));
        return {
          store: made.store,
          kill: () => made.close(),
          forget: (key: string) =>
            Promise.all(made.clients.map((client) => client.del(leaseName(key), queueName(key)))),
        };
      };
      describeStore('with wake-ups', () => actor(), { ties: true });
      describeStore('polled', () => actor(polled), { wakeUps: false, ties: true });

      test('of permits each has one holder, and there are as many as were asked for', async () => {
        const key = someKey();
        const actors = Array.from({ length: 3 }, () => new QuorumActor(group()));
        const held = [];
        for (const each of actors) held.push(await each.acquire(anyPermit(key, 3)));
        expect(held.map((turn) => turn.key).toSorted()).toEqual([0, 1, 2].map((at) => permitName(key, at)));
        const next = new QuorumActor(group()).acquire(anyPermit(key, 3));
        held[1]?.end();
        expect((await next).key).toBe(held[1]?.key);
        (await next).end();
        held[0]?.end();
        held[2]?.end();
      });
    },
  );
}

/** All ask at once, each reaches each node at another time, and with an even number of nodes votes are split most often. */
describe.each([2, 4])('a quorum of %i', (count) => {
  describeWithGroup(
    'with split votes',
    () => startQuorum(count),
    (group) => {
      test('each of many contenders has its turn, one at a time', async () => {
        const uneven: QuorumOptions = {
          wrap: (nodes) => nodes.map((node) => overUnevenLine(node, () => Math.random() * 3)),
        };
        const actors = Array.from({ length: 8 }, () => new QuorumActor(group(), uneven));
        await Promise.all(actors.flatMap(({ clients }) => clients.map((client) => client.ping())));
        let inside = 0;
        for (let round = 0; round < 10; round++) {
          const key = someKey();
          const turns = actors.map(async (actor) => {
            const turn = await actor.acquire(key, { waitTime: 30_000 });
            expect(++inside).toBe(1);
            await actor.clients.at(-1)?.ping();
            inside--;
            turn.end();
          });
          await Promise.all(turns);
        }
        expect(actors.reduce((sum, { store }) => sum + store.splits.count, 0)).toBeGreaterThan(10);
      }, 60_000);
    },
  );
});
