import { expect, inject, test, vi } from 'vitest';
import { DEFAULTS } from '../../src/options/options.js';
import { namesOf } from '../../src/redis/keys.js';
import { eventually } from '../support/eventually.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';

/** A server takes seconds to start where much else runs. */
vi.setConfig({ testTimeout: 60_000 });

let server: PostgresServer;
let app: string;

describeWithShop('while Postgres is away', () => {
  const shop = new Shop(() => ({ postgres: app, admin: server.url, redis: inject('redis').url as string }));

  test.beforeAll(async () => {
    server = await startPostgres();
    app = await setUpShop(server);
    shop.closeLater(() => server.stop());
  });

  async function sell(prisma: ReturnType<Shop['client']>['prisma'], key: string, id: number, waitTime = 30_000) {
    return await prisma.$withLock(
      key,
      async (tx) => {
        const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
        await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
      },
      { waitTime },
    );
  }

  test('callers that had not begun wait for it, and each has its turn when it is back', async () => {
    const { prisma } = shop.client();
    const products = await Promise.all(Array.from({ length: 8 }, () => shop.product(10)));
    // Connections of the pool that are dead afterwards.
    await Promise.all(products.map(({ id, key }) => sell(prisma, key, id)));
    await server.killHard();
    const sales = Promise.all(products.flatMap(({ id, key }) => [sell(prisma, key, id), sell(prisma, key, id)]));
    sales.catch(() => {});
    await server.start();
    await sales;
    for (const { id } of products) expect((await shop.row(id))?.quantity).toBe(7);
  });

  test('one whose wait time is over hears LOCK_UNAVAILABLE, with the reason and without its URL', async () => {
    const { prisma, events } = shop.client();
    const { id, key } = await shop.product(10);
    await server.killHard();
    try {
      const error = await sell(prisma, key, id, 300).catch((error: unknown) => error);
      expect(error).toMatchObject({
        code: 'LOCK_UNAVAILABLE',
        key,
        message: expect.stringMatching(/^Postgres .* within 300 ms: /),
      });
      expect(events).toContainEqual({ type: 'postgres-unavailable', key, error: expect.any(Error) });
      const { username, password } = new URL(app);
      expect((error as Error).message).not.toContain(`${username}:${password}`);
      await expect(prisma.$tryWithLock(key, () => {})).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    } finally {
      await server.start();
    }
    await sell(prisma, key, id);
  });

  test('one that is aborted or closed meanwhile is heard at once', async () => {
    const { prisma } = shop.client();
    const { key } = await shop.product(10);
    const redis = shop.redis();
    const { lease } = namesOf(DEFAULTS.keyPrefix, key);
    await server.killHard();
    try {
      const reason = new Error('enough');
      const aborting = new AbortController();
      const aborted = prisma.$withLock(key, () => {}, { waitTime: 30_000, signal: aborting.signal });
      aborted.catch(() => {});
      await eventually('it has the lease', async () => (await redis.exists(lease)) === 1);
      aborting.abort(reason);
      await expect(aborted).rejects.toBe(reason);
      const closed = prisma.$withLock(key, () => {}, { waitTime: 30_000 });
      closed.catch(() => {});
      await eventually('it has the lease', async () => (await redis.exists(lease)) === 1);
      await prisma.$locks.close();
      await expect(closed).rejects.toMatchObject({ code: 'CLOSED' });
    } finally {
      await server.start();
    }
  });

  test('work that had begun is not run again', async () => {
    const { prisma } = shop.client();
    const { id, key } = await shop.product(10);
    const [begun, ends] = [gate(), gate()];
    let runs = 0;
    const held = prisma.$withLock(key, async (tx) => {
      runs++;
      begun.open();
      await ends.opened;
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
    });
    held.catch(() => {});
    await begun.opened;
    await server.restart();
    ends.open();
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key });
    expect(runs).toBe(1);
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
