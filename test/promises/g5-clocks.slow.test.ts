import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { FencedLockEvent } from '../../src/index.js';
import { namesOf } from '../../src/redis/names.js';
import { eventually } from '../support/eventually.js';
import {
  askServer,
  groupsUnavailable,
  moveClock,
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
  wallClock,
  wallClocksUnavailable,
} from '../support/servers/index.js';
import { atWork, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { startWorker } from '../support/worker.js';

const LEASE = 2_000;
const HOUR = 3_600_000;
/** Of everything but leases; milliseconds. */
const WORK = 5_000;

describe("G5 when a server's wall clock is set", () => {
  const unavailable = wallClocksUnavailable() ?? groupsUnavailable();
  if (unavailable !== undefined) {
    test.skip(unavailable, () => {});
    return;
  }
  let postgres: PostgresServer;
  let redis: RedisServer;
  let app: string;
  beforeAll(async () => {
    [postgres, redis] = await Promise.all([startPostgres({ env: wallClock }), startRedis({ env: wallClock })]);
    app = await setUpShop(postgres);
  });
  afterAll(() => Promise.all([postgres?.stop(), redis?.stop()]));
  const shop = new Shop(() => ({ postgres: app, redis: redis.url, admin: postgres.url }));
  afterEach(() => {
    moveClock(postgres, 0);
    moveClock(redis, 0);
  });

  /** A holder in a process of its own that has written its row and not committed. */
  async function holder() {
    const product = await shop.product(10);
    const args = [app, redis.url, product.key, String(product.id), 'idle', String(LEASE)];
    const worker = startWorker(new URL('./holder.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    await worker.next('inside');
    return { worker, ...product };
  }

  /** A contender that asks now, and what it says of itself. */
  function contender(id: number, key: string, { prisma, events } = shop.client()) {
    const since = performance.now();
    const decrement = { where: { id }, data: { quantity: { decrement: 1 } } };
    const sold = prisma.$withLock(key, (tx) => tx.stock.update(decrement), { leaseTime: LEASE, waitTime: 20_000 });
    return { events, sold: sold.then(({ quantity }) => ({ quantity, after: performance.now() - since })) };
  }

  const waits = (key: string) =>
    eventually(
      'somebody waits',
      async () => (await askServer(redis.url, 'LLEN', namesOf('fenced-lock:', key).queue)) === 1,
    );
  const nowOf = async () => {
    const { rows } = await shop.admin.query<{ now: Date }>('SELECT clock_timestamp() AS now');
    const [seconds] = (await askServer(redis.url, 'TIME')) as [string];
    return { postgres: Number(rows[0]?.now), redis: Number(seconds) * 1_000 };
  };

  test('the clocks are moved, in both directions', async () => {
    for (const ahead of [HOUR, -HOUR, 0]) {
      moveClock(postgres, ahead);
      moveClock(redis, ahead);
      const { postgres: ofPostgres, redis: ofRedis } = await nowOf();
      expect(Math.abs(ofPostgres - Date.now() - ahead)).toBeLessThan(60_000);
      expect(Math.abs(ofRedis - Date.now() - ahead)).toBeLessThan(60_000);
    }
  });

  describe('of Redis', () => {
    test('an hour back: a crashed holder delays a newcomer by its lease', async () => {
      const { worker, id, key } = await holder();
      await worker.kill();
      moveClock(redis, -HOUR);
      const { quantity, after } = await contender(id, key).sold;
      expect(quantity).toBe(9);
      expect(after).toBeLessThan(LEASE + WORK);
    });

    test('an hour back: and one that waited already by what was left of it, and its lease once more', async () => {
      const { worker, id, key } = await holder();
      const { sold } = contender(id, key);
      await waits(key);
      await worker.kill();
      moveClock(redis, -HOUR);
      const { quantity, after } = await sold;
      expect(quantity).toBe(9);
      expect(after).toBeLessThan(3 * LEASE + WORK);
    });

    test('an hour ahead: every lease ends, a holder that is well is told so, and nothing of it is written', async () => {
      const { worker, id, key } = await holder();
      const { sold } = contender(id, key);
      await waits(key);
      moveClock(redis, HOUR);
      expect((await sold).quantity).toBe(9);
      worker.send({ type: 'go on' });
      expect((await worker.next('end'))['code']).toBe('LOCK_LOST');
      expect((await shop.row(id))?.quantity).toBe(9);
    });

    test('an hour ahead and back again: nobody is left waiting for what was set in between', async () => {
      moveClock(redis, HOUR);
      const { worker, id, key } = await holder();
      await worker.kill();
      moveClock(redis, 0);
      const { quantity, after } = await contender(id, key).sold;
      expect(quantity).toBe(9);
      expect(after).toBeLessThan(LEASE + WORK);
    });
  });

  describe('of Postgres', () => {
    const ended = (events: readonly FencedLockEvent[]) => events.filter(({ type }) => type === 'backend-ended').length;

    test.each([
      ['ahead', HOUR],
      ['back', -HOUR],
    ])('an hour %s: a holder that is well goes on, and commits', async (_, ahead) => {
      const { id, key } = await shop.product(10);
      const { prisma, events } = shop.client();
      const decrement = { where: { id }, data: { quantity: { decrement: 1 } } };
      const { held: selling, goOn } = await atWork(prisma, key, (tx) => tx.stock.update(decrement), {
        leaseTime: LEASE,
      });
      const next = contender(id, key);
      await waits(key);
      moveClock(postgres, ahead);
      await new Promise((resolve) => setTimeout(resolve, 2 * LEASE));
      goOn();
      await selling;
      expect((await next.sold).quantity).toBe(8);
      expect(ended([...events, ...next.events])).toBe(0);
    });

    test.each([
      ['ahead', HOUR],
      ['back', -HOUR],
    ])('an hour %s: a frozen holder delays the others by its lease, and writes nothing', async (_, ahead) => {
      const { worker, id, key } = await holder();
      worker.freeze();
      moveClock(postgres, ahead);
      const { quantity, after } = await contender(id, key).sold;
      expect(quantity).toBe(9);
      expect(after).toBeLessThan(LEASE + WORK);
      worker.thaw();
      worker.send({ type: 'go on' });
      expect((await worker.next('end'))['code']).not.toBe('committed');
      expect((await shop.row(id))?.quantity).toBe(9);
    });
  });
});
