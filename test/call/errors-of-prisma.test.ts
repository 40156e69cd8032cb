import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { freePort, startPostgres, withUser } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

// As docs/errors.md says: "Errors that come from Prisma".
describeWithShop('what comes from Prisma', () => {
  const shop = new Shop();

  function clientAt(url: string) {
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
    shop.closeLater(() => plain.$disconnect());
    return { plain, prisma: plain.$extends(fencedLock({ redis: shop.redis(), onEvent: () => {} })) };
  }

  /** A server of this test alone, which asks for passwords. */
  async function guarded(): Promise<string | undefined> {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    if (!server.supervised) return undefined;
    const pool = new Pool({ connectionString: server.url });
    pool.on('error', () => {});
    const { rows } = await pool.query<{ hba_file: string }>('SHOW hba_file');
    await pool.query("CREATE ROLE newcomer LOGIN PASSWORD 'the right one'");
    await pool.query(`COPY (SELECT 'host all newcomer all scram-sha-256') TO '${rows[0]?.hba_file}'`);
    await pool.query('SELECT pg_reload_conf()');
    await pool.end();
    return withUser(server.url, 'newcomer', 'a wrong one');
  }

  test('P1000: a wrong password, of a query and of a lock, whose key is free at once', async () => {
    const url = await guarded();
    if (url === undefined) return;
    const { plain, prisma } = clientAt(url);
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1000' });
    await expect(prisma.$withLock(key, () => {})).rejects.toMatchObject({ code: 'P1000' });
    expect(await shop.client().prisma.$withLock(key, () => 'in')).toBe('in');
  });

  test('P1003: a database that does not exist', async () => {
    const { plain, prisma } = clientAt(Object.assign(new URL(inject('postgres').app), { pathname: '/not_there' }).href);
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1003' });
    await expect(prisma.$withLock(key, () => {})).rejects.toMatchObject({ code: 'P1003' });
  });

  test('P1001: a server that cannot be reached; a lock tries again for its waitTime, and then says so', async () => {
    const { plain, prisma } = clientAt(
      Object.assign(new URL(inject('postgres').app), { port: String(await freePort()) }).href,
    );
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1001' });
    await expect(prisma.$withLock(key, () => {}, { waitTime: 300 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      message: expect.stringMatching(/^Postgres gave no usable answer/),
    });
  });
});
