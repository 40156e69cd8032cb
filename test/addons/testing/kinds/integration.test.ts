import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { faultLines, type TestServers, testServers } from '../../../../src/addons/testing/index.js';
import { describeWithShop, gate } from '../../../support/shop.js';
import { type Client, closeDay, createClient, redeem, sell, transfer } from './shop.js';

describeWithShop('the four kinds of locks, on real servers', () => {
  let servers: TestServers;
  let clients: Client[];
  const closing: Array<() => Promise<unknown>> = [];

  /** One process of the application. */
  function client(databaseUrl = servers.databaseUrl, redisUrl = servers.redisUrl, leaseTime = 30_000): Client {
    const { prisma, close } = createClient(databaseUrl, redisUrl, { leaseTime });
    closing.push(close);
    return prisma;
  }
  const [one, other] = [() => clients[0] as Client, () => clients[1] as Client];

  beforeAll(async () => {
    for (const name of ['DATABASE_URL', 'REDIS_URL']) vi.stubEnv(name, '');
    servers = await testServers();
    clients = [client(), client()];
  });
  afterEach(() => servers.empty());
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
    await servers.stop();
    vi.unstubAllEnvs();
  });

  const stock = async (quantity: number) =>
    (await one().stock.create({ data: { product: `${quantity}`, quantity } })).id;
  const left = async (id: number) => (await one().stock.findUniqueOrThrow({ where: { id } })).quantity;

  test('forty buyers at two processes buy thirty', async () => {
    const id = await stock(30);
    const sales = await Promise.all(Array.from({ length: 40 }, (_, n) => sell(n % 2 ? one() : other(), id)));
    expect(sales.filter((sale) => sale === 'sold')).toHaveLength(30);
    expect(await left(id)).toBe(0);
  });

  test('transfers there and back keep the sum', async () => {
    const [a, b] = [await stock(100), await stock(101)];
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? transfer(one(), a, b, 3) : transfer(other(), b, a, 2))),
    );
    expect([await left(a), await left(b)]).toEqual([90, 111]);
  });

  test('a coupon is redeemed once', async () => {
    const id = await stock(1);
    const tries = await Promise.all([redeem(one(), id), redeem(other(), id), redeem(one(), id)]);
    expect(tries.filter((each) => each === 'redeemed')).toHaveLength(1);
  });

  test('the job of the night runs once on all machines', async () => {
    const runs = await Promise.all([closeDay(one()), closeDay(other())]);
    expect(runs.filter((run) => run !== 'done')).toHaveLength(1);
  });

  test('fault: a sale whose COMMIT is not answered is sold once', async () => {
    const lines = await faultLines(servers);
    closing.push(() => lines.close());
    const id = await stock(5);
    const unlucky = client(lines.databaseUrl, lines.redisUrl);
    const dropped = lines.dropConnection({ at: 'commit' });
    expect(await sell(unlucky, id)).toBe('sold');
    await dropped;
    expect(await left(id)).toBe(4);
  });

  test('fault: a transfer whose COMMIT does not arrive moves nothing', async () => {
    const lines = await faultLines(servers);
    closing.push(() => lines.close());
    const [a, b] = [await stock(5), await stock(6)];
    const unlucky = client(lines.databaseUrl, lines.redisUrl);
    const dropped = lines.dropConnection({ at: 'before commit' });
    await expect(transfer(unlucky, a, b, 1)).rejects.toThrow();
    await dropped;
    expect([await left(a), await left(b)]).toEqual([5, 6]);
  });

  test('fault: a flush of Redis lets a coupon be redeemed once all the same', async () => {
    const lines = await faultLines(servers);
    closing.push(() => lines.close());
    const id = await stock(1);
    const tries = Array.from({ length: 6 }, (_, n) => redeem(n % 2 ? one() : other(), id).catch(() => 'failed'));
    await lines.flushRedis();
    const outcomes = await Promise.all([...tries, redeem(one(), id)]);
    expect(outcomes.filter((each) => each === 'redeemed').length).toBeLessThanOrEqual(1);
    // With whoever is left.
    await vi.waitFor(async () => expect(await redeem(one(), id)).toBe('used up'));
  });

  test('fault: a machine that stands still in its job does not keep the others from it for longer than its lease', async () => {
    const lines = await faultLines(servers);
    closing.push(() => lines.close());
    const frozen = client(lines.databaseUrl, lines.redisUrl, 1_000);
    const inside = gate();
    const night = frozen
      .$oncePer('nightly', 86_400_000, async (tx) => {
        await tx.order.count();
        lines.freezeHolder();
        inside.open();
        return await tx.order.count();
      })
      .catch(() => 'failed');
    await inside.opened;
    const busy = await one().$oncePer('nightly', 86_400_000, () => 'mine');
    expect(busy).toMatchObject({ ran: false, busy: true });
    await vi.waitFor(async () => expect(await closeDay(one())).toBe(0), { timeout: 20_000, interval: 200 });
    lines.thawHolder();
    expect(await night).toBe('failed');
    expect(await closeDay(other())).toBe('done');
  });
});
