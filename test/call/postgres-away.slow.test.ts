import { PrismaPg } from '@prisma/adapter-pg';
import { describe, expect, inject, test, vi } from 'vitest';
import { type PostgresServer, pgBouncerUnavailable, startPgBouncer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, gate, Shop, type ShopClient, sale } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';

/** A server takes seconds to start where much else runs. */
vi.setConfig({ testTimeout: 60_000 });

whilePostgresIsAway('directly', (app) => Promise.resolve({ url: app, stop: () => Promise.resolve() }));

const unavailable = pgBouncerUnavailable();
if (unavailable !== undefined) {
  describe('while Postgres is away, through PgBouncer', () => test.skip(unavailable, () => {}));
} else {
  whilePostgresIsAway('through PgBouncer', async (app) => {
    const bouncer = await startPgBouncer([app], { server_login_retry: '1' });
    return { url: bouncer.url(app), stop: () => bouncer.stop() };
  });
}

function whilePostgresIsAway(
  path: string,
  lead: (app: string) => Promise<{ readonly url: string; stop(): Promise<void> }>,
): void {
  describeWithShop(`while Postgres is away, ${path}`, () => {
    let server: PostgresServer;
    let app: string;
    let way: string;
    const shop = new Shop(() => ({ postgres: way, admin: server.url, redis: inject('redis').url as string }));
    const client = () => shop.client({ rescue: new PrismaPg({ connectionString: app }) });

    test.beforeAll(async () => {
      server = await startPostgres();
      app = await setUpShop(server);
      const { url, stop } = await lead(app);
      way = url;
      shop.closeLater(() => server.stop());
      shop.closeLater(stop);
    });

    const sell = (prisma: ShopClient, { id, key }: { id: number; key: string }) =>
      prisma.$withLock(key, sale(id), { waitTime: 30_000 });

    test('callers that had not begun wait for it, and each has its turn when it is back', async () => {
      const { prisma } = client();
      const products = await Promise.all(Array.from({ length: 8 }, () => shop.product(10)));
      // Connections of the pool that are dead afterwards.
      await Promise.all(products.map((product) => sell(prisma, product)));
      await server.killHard();
      const sales = Promise.all(products.flatMap((product) => [sell(prisma, product), sell(prisma, product)]));
      sales.catch(() => {});
      await server.start();
      await sales;
      for (const { id } of products) expect((await shop.row(id))?.quantity).toBe(7);
    });

    test('work that had begun is told before its function ends, and is not run again', async () => {
      const { prisma } = client();
      const { id, key } = await shop.product(10);
      let runs = 0;
      const [begun, ends] = [gate(), gate()];
      const work = sale(id, () => {
        runs++;
        begun.open();
        return ends.opened;
      });
      const held = prisma.$withLock(key, work);
      held.catch(() => {});
      await begun.opened;
      await server.restart();
      await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection', key });
      ends.open();
      expect(runs).toBe(1);
      expect((await shop.row(id))?.quantity).toBe(10);
    });
  });
}
