import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { fencedLock, NotInstalledError } from '../../src/index.js';
import { FencedClient } from '../../src/pg/index.js';
import { WithBegin } from '../../src/pg/with-begin.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, Shop } from '../support/shop.js';

const ADMISSION = 'fenced_lock.admit(';

describeWithShop("the driver's client of this package", () => {
  const shop = new Shop();

  /** A locking client, and what its connections send, piece by piece as it arrives at the server. */
  async function watched() {
    const { proxy, url } = await proxied();
    const flights: string[] = [];
    proxy.onData('toServer', (data) => {
      flights.push(data.toString('latin1'));
      return 'forward';
    });
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 1, Client: FencedClient }) });
    shop.closeLater(() => plain.$disconnect());
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const prisma = plain.$extends(fencedLock({ redis: shop.redis(), rescue }));
    // Its connection is there, and what it sends on being opened.
    await plain.$queryRaw`SELECT 1`;
    flights.length = 0;
    return { prisma, plain, flights };
  }

  async function proxied(): Promise<{ proxy: FaultProxy; url: string }> {
    const { hostname, port } = new URL(inject('postgres').app);
    const proxy = await startFaultProxy({ host: hostname, port: Number(port) });
    onTestFinished(() => proxy.close());
    return { proxy, url: proxy.url(inject('postgres').app) };
  }

  test('sends BEGIN along with the admission', async () => {
    const { prisma, flights } = await watched();
    const { key } = await shop.product(1);
    await prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT 'the work'`);
    expect(flights).toEqual([
      expect.stringMatching(/BEGIN.*fenced_lock\.admit\(/s),
      expect.stringContaining('the work'),
      expect.stringContaining('COMMIT'),
    ]);
  });

  test('sends what is said of the transaction along too', async () => {
    const { prisma, flights } = await watched();
    const { key } = await shop.product(1);
    const level = await prisma.$withLock(key, (tx) => tx.$queryRaw`SHOW transaction_isolation`, {
      isolationLevel: 'Serializable',
    });
    expect(level).toEqual([{ transaction_isolation: 'serializable' }]);
    expect(flights[0]).toMatch(/BEGIN.*SERIALIZABLE.*fenced_lock\.admit\(/s);
  });

  test('sends nothing of a transaction that was never admitted', async () => {
    const { prisma, plain, flights } = await watched();
    const { key } = await shop.product(1);
    const { prisma: holder } = shop.client();
    const held = await holder.$lock(key);
    expect(await prisma.$tryWithLock(key, () => 1)).toEqual({ acquired: false });
    // On the only connection, so that everything before it has been sent.
    await plain.$queryRaw`SELECT 'next'`;
    expect(flights).toEqual([expect.stringContaining('next')]);
    await held.release();
  });

  test('begins a transaction that is no lock’s at once', async () => {
    const { plain, flights } = await watched();
    await plain.$transaction((tx) => tx.$queryRaw`SELECT 1 AS one`);
    expect(flights).toEqual([
      expect.stringMatching(/BEGIN/),
      expect.stringContaining('AS one'),
      expect.stringContaining('COMMIT'),
    ]);
    expect(flights[0]).not.toContain('one');
  });

  test('leaves alone what the work begins on another client', async () => {
    const { plain, flights } = await watched();
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => plain.$transaction((tx) => tx.$queryRaw`SELECT 1 AS one`));
    expect(flights).toHaveLength(3);
  });

  test('keeps the work and its rollback in one transaction', async () => {
    const { prisma } = await watched();
    const { id, key } = await shop.product(10);
    const failing = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 3 } });
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('gets over a connection of the pool that was reset', async () => {
    const { proxy, url } = await proxied();
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 1, Client: FencedClient }) });
    shop.closeLater(() => plain.$disconnect());
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const prisma = plain.$extends(fencedLock({ redis: shop.redis(), rescue }));
    const { key } = await shop.product(1);
    const pids = () => prisma.$withLock(key, (tx) => tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`);
    const [before] = await pids();
    let cuts = 0;
    // As by something on the way that has forgotten the connection: nobody knows until something is sent.
    proxy.onData('toServer', () => (cuts++ === 0 ? 'cut' : 'forward'));
    const [after] = await pids();
    expect(after.pid).not.toBe(before.pid);
  });

  test('names the errors of Postgres as ever', async () => {
    const database = `bare_${Date.now()}`;
    await shop.admin.query(`CREATE DATABASE ${database}`);
    const url = Object.assign(new URL(inject('postgres').app), { pathname: `/${database}` }).href;
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, Client: FencedClient }) });
    shop.closeLater(() => plain.$disconnect());
    const prisma = plain.$extends(fencedLock({ redis: shop.redis() }));
    await expect(prisma.$withLock(database, () => 1)).rejects.toBeInstanceOf(NotInstalledError);
  });

  test('never runs a statement whose BEGIN failed', async () => {
    const client = new FencedClient(inject('postgres').admin);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('CREATE TEMP TABLE seen (n int)');
    const sent = new Promise((resolve, reject) => {
      const query = new WithBegin(
        ['BEGIN', 'NO SUCH THING'],
        { text: 'INSERT INTO seen VALUES ($1)', values: [1] },
        (error, result) => (error ? reject(error) : resolve(result)),
      );
      client.query(query);
    });
    await expect(sent).rejects.toMatchObject({ code: '42601' });
    await client.query('ROLLBACK');
    expect((await client.query('SELECT * FROM seen')).rows).toEqual([]);
  });

  test('gives the rows of the statement and not of BEGIN', async () => {
    const client = new pg.Client(inject('postgres').admin);
    await client.connect();
    onTestFinished(() => client.end());
    const rows = await new Promise((resolve, reject) => {
      client.query(
        new WithBegin(['BEGIN'], { text: `SELECT '${ADMISSION}' AS text`, values: [] }, (error, result) =>
          error ? reject(error) : resolve((result as pg.QueryResult).rows),
        ),
      );
    });
    expect(rows).toEqual([{ text: ADMISSION }]);
    expect((await client.query('SELECT pg_current_xact_id_if_assigned()')).rowCount).toBe(1);
    await client.query('ROLLBACK');
  });
});
