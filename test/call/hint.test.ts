import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';
import { slowCommit } from './slow-commit.js';

describeWithShop('a process that is next, while the COMMIT before it is under way', () => {
  const shop = new Shop();

  /** A contender in another process, and what its sessions do. */
  function contending(isolationLevel?: 'RepeatableRead') {
    const application_name = `next ${randomUUID()}`;
    const { prisma } = shop.client({ pool: { application_name } });
    const doing = async () => {
      const { rows } = await shop.admin.query<{ state: string; waits: boolean }>(
        `SELECT state, wait_event_type IS NOT DISTINCT FROM 'Lock' AS waits FROM pg_stat_activity
         WHERE application_name = $1 AND state <> 'idle'`,
        [application_name],
      );
      return rows[0];
    };
    /** Resolves to the time at which its transaction began. */
    const enter = async (key: string) => {
      const held = prisma.$withLock(
        key,
        async (tx) => (await tx.$queryRaw<[{ began: Date }]>`SELECT transaction_timestamp() AS began`)[0].began,
        isolationLevel ? { isolationLevel } : {},
      );
      await shop.queued(key);
      return { held };
    };
    /** Asks without a pause for half a second: it waits for a tenth of a second at most. */
    const isSeenWaiting = async () => {
      const until = performance.now() + 500;
      while (performance.now() < until) if ((await doing())?.waits) return true;
      return false;
    };
    return { prisma, doing, enter, isSeenWaiting };
  }

  /** A holder whose COMMIT lasts until it is told to go on, and that has waited for the key: it sends a hint. */
  async function committing(prisma: ShopClient, key: string) {
    const earlier = await shop.client().prisma.$lock(key);
    const slow = await slowCommit(shop);
    const [begun, ends] = [gate(), gate()];
    const work = async (tx: Pick<ShopClient, '$executeRawUnsafe'>) => {
      begun.open();
      await ends.opened;
      await tx.$executeRawUnsafe(slow.insert());
    };
    // So long that nobody gets the key because a lease has ended.
    const held = prisma.$withLock(key, work, { leaseTime: 60_000 });
    await shop.queued(key);
    await earlier.release();
    await begun.opened;
    const end = async () => {
      ends.open();
      await shop.blocked('COMMIT');
    };
    return { held, end, goOn: slow.goOn };
  }

  /**
   * A holder of this client whose COMMIT lasts, and a contender that waits for its row. On a busy machine, the contender's
   * transaction may be rolled back before anybody has seen it wait: then with another key.
   */
  async function hinted() {
    for (let tries = 0; tries < 20; tries++) {
      const { key } = await shop.product(10);
      const { prisma } = shop.client();
      const holder = await committing(prisma, key);
      const contender = contending();
      const { held } = await contender.enter(key);
      await holder.end();
      if (await contender.isSeenWaiting()) return { holder, contender, held };
      await holder.goOn();
      await Promise.allSettled([holder.held, held]);
    }
    throw new Error('no contender was seen to wait for the row');
  }

  test('gives its connection back where that lasts, and has its turn all the same', async () => {
    const { holder, contender, held } = await hinted();
    // Before the holder's lease would end, and a look with it.
    await eventually('it is rolled back', async () => (await contender.doing()) === undefined, { within: 3_000 });
    const { rows } = await shop.admin.query<{ after: Date }>('SELECT clock_timestamp() AS after');
    await holder.goOn();
    expect((await held) > (rows[0]?.after as Date)).toBe(true);
    await holder.held;
  });

  test('works in vain by an old offer, and refuses no transaction of the handle that has the key', async () => {
    const { key, id } = await shop.product(10);
    const handle = await shop.client().prisma.$lock(key);
    const { prisma } = shop.client();
    let lost: unknown;
    const held = prisma
      .$withLock(key, () => new Promise(() => {}))
      .catch((error: unknown) => {
        lost = error;
      });
    await shop.queued(key);
    const { queue, wake } = namesOf('fenced-lock:', key);
    const redis = shop.redis();
    const next = (await redis.lindex(queue, 0))?.split(' ')[0];
    // The hint and the offer of an earlier holder, as a process reads them behind a pause.
    while (lost === undefined) {
      await redis.publish(wake, `next ${next}`);
      await sleep(10);
      await redis.publish(wake, `${next} 1000`);
      await sleep(10);
    }
    await held;
    expect(lost).toMatchObject({ code: 'LOCK_LOST' });
    await handle.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 8 } }));
    await handle.release();
  });

  test('begins nothing where its snapshot would be from before that COMMIT', async () => {
    const { key } = await shop.product(10);
    const holder = await committing(shop.client().prisma, key);
    const contender = contending('RepeatableRead');
    const { held } = await contender.enter(key);
    await holder.end();
    for (let looks = 0; looks < 20; looks++) expect(await contender.doing()).toBeUndefined();
    await holder.goOn();
    await held;
    await holder.held;
  });
});
