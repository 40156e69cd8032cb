import { fakeLocks, faultLines, type TestServers, testServers } from 'prisma-extension-fenced-lock/testing';
import { type Client, createClient } from '../src/client';
import { sell } from '../src/sell';

describe('a sale, without a server', () => {
  const stock = { findUniqueOrThrow: async () => ({ quantity: 2 }), update: jest.fn(async () => {}) };

  test('takes one of the stock', async () => {
    const locks = fakeLocks<Client>({ stock });
    expect(await sell(locks.prisma, 1)).toBe('sold');
    expect(stock.update).toHaveBeenCalledWith({ where: { id: 1 }, data: { quantity: 1 } });
  });

  test('is busy when its wait time is over', async () => {
    const locks = fakeLocks<Client>({ stock });
    await locks.hold('stock:1');
    jest.useFakeTimers();
    const sale = sell(locks.prisma, 1, { waitTime: 60_000 });
    await locks.waiting('stock:1');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(await sale).toBe('busy');
    jest.useRealTimers();
  });

  test('passes on that nobody knows its outcome', async () => {
    const locks = fakeLocks<Client>({ stock });
    locks.next('stock:1').hasUnknownOutcome();
    await expect(sell(locks.prisma, 1)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
  });
});

describe('a sale, on real servers', () => {
  let servers: TestServers;
  let shop: ReturnType<typeof createClient>;
  beforeAll(async () => {
    servers = await testServers();
    shop = createClient(servers);
  });
  afterEach(() => servers.empty());
  afterAll(async () => {
    await shop.close();
    await servers.stop();
  });

  const left = async () => (await shop.prisma.stock.findUniqueOrThrow({ where: { id: 1 } })).quantity;

  test('ten buyers buy seven', async () => {
    await shop.prisma.stock.create({ data: { id: 1, quantity: 7 } });
    const sales = await Promise.all(Array.from({ length: 10 }, () => sell(shop.prisma, 1)));
    expect(sales.filter((sale) => sale === 'sold')).toHaveLength(7);
    expect(await left()).toBe(0);
  });

  test('fault: COMMIT is done and its answer is lost, and one is sold', async () => {
    const lines = await faultLines(servers);
    const unlucky = createClient(lines);
    await shop.prisma.stock.create({ data: { id: 1, quantity: 7 } });
    const dropped = lines.dropConnection({ at: 'commit' });
    expect(await sell(unlucky.prisma, 1)).toBe('sold');
    await dropped;
    expect(await left()).toBe(6);
    await unlucky.close();
    await lines.close();
  });
});
