import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { withDatabase, withUser } from '../support/servers/index.js';
import { describeWithShop, gate, Shop, type ShopClient, STAYS } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { slowAdmission } from './slow-admission.js';

/** Longer than this test may take. */
const OPTIONS = { leaseTime: 120_000, waitTime: 20_000 };

describeWithShop('a connection that is silent from the answer to COMMIT on', () => {
  const url = withDatabase(inject('postgres').admin, `silent_${randomUUID().replaceAll('-', '')}`);
  const app = withUser(url, 'shop_app', 'shop_app');
  const shared = new Shop();
  const shop = new Shop(() => ({ postgres: app, admin: url, redis: inject('redis').url as string }));

  test('is closed: the next caller is told, and the pool and the key serve who comes then', async () => {
    const name = new URL(url).pathname.slice(1);
    await shared.admin.query(`CREATE DATABASE ${name}`);
    shared.closeLater(async () => {
      await shop.close();
      await shared.admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    });
    await setUpShop({ url, urlFor: (user, password) => withUser(url, user, password) });
    const admissions = await slowAdmission(shop);
    const { id, key } = await shop.product(10);
    const { hostname: host, port } = new URL(app);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    const pool = new pg.Pool({ connectionString: proxy.url(app), max: 2 });
    pool.on('error', () => {});
    shop.closeLater(() => pool.end());
    shop.closeLater(() => proxy.close());
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    const rescue = new PrismaPg({ connectionString: app });
    const prisma = plain.$extends(fencedLock({ redis: shop.redis(), rescue, ...STAYS })) as ShopClient;

    const [begun, ends] = [gate(), gate()];
    const first = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 5 } });
        begun.open();
        await ends.opened;
      },
      OPTIONS,
    );
    await begun.opened;
    const next = prisma.$withLock(key, () => 'in', OPTIONS);
    const told = expect(next).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection' });
    const last = prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }), OPTIONS);
    await admissions.hold();
    ends.open();
    await first;
    const holdOnce = proxy.onData('toClient', () => {
      holdOnce();
      return 'hold';
    });
    await admissions.goOn();
    await told;
    expect((await last).quantity).toBe(5);
    await eventually('the pool has all its connections', async () => pool.idleCount === pool.totalCount);
  }, 60_000);
});
