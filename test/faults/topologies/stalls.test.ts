import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { namesOf } from '../../../src/redis/names.js';
import { eventually } from '../../support/eventually.js';
import { Gaps, write } from '../../support/gaps.js';
import { connectTo } from '../../support/redis-site.js';
import { type FailoverGroup, type RedisServer, startCluster, startSentinelGroup } from '../../support/servers/index.js';
import { Shop } from '../../support/shop.js';
import { describeWithGroup } from '../../support/site-suite.js';

const CLIENTS = 3;
const CALLERS = 2;
/** What the locks may need beyond the servers' own failover; milliseconds. */
const BEYOND = 2_000;
/** A Sentinel whose machine stood still does nothing for 30 seconds (TILT). */
const PATIENCE = { within: 40_000, every: 20 };

/** What is done to a master, and what heals it when another node has taken over. */
const ENDS = [
  ['killed', (old: RedisServer) => old.killHard(), (old: RedisServer) => old.start()],
  ['frozen, and thawed', async (old: RedisServer) => old.freeze(), async (old: RedisServer) => old.thaw()],
] as const;

for (const [name, start] of [
  ['Sentinel', startSentinelGroup],
  ['a Cluster', startCluster],
] as const) {
  describeWithGroup<FailoverGroup>(
    `the longest stall of $withLock at a failover of ${name}, with its default times`,
    start,
    (group) => {
      const shop = new Shop();

      test.each(ENDS)(
        'is at most two seconds longer than the servers take no write: master %s',
        async (how, hurt, heal) => {
          const { id, key } = await shop.product(0);
          const lease = namesOf('fenced-lock:', key).lease;
          const [turns, writes] = [new Gaps(), new Gaps()];
          let over = false;
          const sell = async ({ prisma }: ReturnType<Shop['client']>) => {
            const data = { quantity: { increment: 1 } };
            while (!over) {
              await prisma
                .$withLock(key, (tx) => tx.stock.update({ where: { id }, data }), { waitTime: 60_000 })
                .then(
                  () => turns.did(),
                  // A lease that was lost with the master, for one; what counts is when the next turn is done.
                  () => {},
                );
            }
          };
          const clients = Array.from({ length: CLIENTS }, () => {
            const { redis, close } = connectTo(group().site);
            shop.closeLater(close);
            return shop.client({ redis, pool: { max: 4 } });
          });
          const selling = clients.flatMap((client) => Array.from({ length: CALLERS }, () => sell(client)));
          const writing = write(group(), `${lease.slice(0, lease.indexOf('}') + 1)}:written`, writes, () => over);
          await eventually('everything goes well', async () => turns.done > 50 && writes.done > 10, PATIENCE);

          const old = await group().ownerOf(lease);
          await hurt(old);
          const successor = async () =>
            (
              await group()
                .ownerOf(lease)
                .catch(() => old)
            ).port !== old.port;
          await eventually('another node has taken over', successor, PATIENCE);
          await heal(old);
          const done = turns.done;
          await eventually('turns are done again', async () => turns.done > done + 10, PATIENCE);
          // Longer than any stall may be: whoever stands still now shows.
          await sleep(3 * BEYOND);
          const [servers, stall] = [writes.longest, turns.longest];
          console.log(
            `${name}, master ${how}: the servers took no write for ${Math.round(servers)} ms, no turn was done for ` +
              `${Math.round(stall)} ms`,
          );
          over = true;
          await Promise.all([writing, ...selling]);
          expect(stall).toBeLessThan(servers + BEYOND);
          expect((await shop.row(id))?.quantity).toBe(turns.done);
          await eventually('the group is whole', group().isWhole, PATIENCE);
        },
        180_000,
      );
    },
  );
}
