import assert from 'node:assert/strict';
import { after, afterEach, before, describe, mock, test } from 'node:test';
import { fakeLocks, faultLines, type TestServers, testServers } from 'prisma-extension-fenced-lock/testing';
import { type Client, createClient } from '../src/client';
import { sell } from '../src/sell';

describe('a sale, without a server', () => {
  const stock = { findUniqueOrThrow: async () => ({ quantity: 2 }), update: mock.fn(async (_: unknown) => {}) };

  test('takes one of the stock', async () => {
    const locks = fakeLocks<Client>({ stock });
    assert.equal(await sell(locks.prisma, 1), 'sold');
    assert.deepEqual(stock.update.mock.calls[0]?.arguments, [{ where: { id: 1 }, data: { quantity: 1 } }]);
  });

  test('is busy when its wait time is over', async () => {
    const locks = fakeLocks<Client>({ stock });
    await locks.hold('stock:1');
    mock.timers.enable({ apis: ['setTimeout'] });
    const sale = sell(locks.prisma, 1, { waitTime: 60_000 });
    await locks.waiting('stock:1');
    mock.timers.tick(60_000);
    assert.equal(await sale, 'busy');
    mock.timers.reset();
  });

  test('passes on that nobody knows its outcome', async () => {
    const locks = fakeLocks<Client>({ stock });
    locks.next('stock:1').hasUnknownOutcome();
    await assert.rejects(sell(locks.prisma, 1), { code: 'COMMIT_UNKNOWN' });
  });
});

describe('a sale, on real servers', () => {
  let servers: TestServers;
  let shop: ReturnType<typeof createClient>;
  before(async () => {
    servers = await testServers();
    shop = createClient(servers);
  });
  afterEach(() => servers.empty());
  after(async () => {
    await shop.close();
    await servers.stop();
  });

  const left = async () => (await shop.prisma.stock.findUniqueOrThrow({ where: { id: 1 } })).quantity;

  test('ten buyers buy seven', async () => {
    await shop.prisma.stock.create({ data: { id: 1, quantity: 7 } });
    const sales = await Promise.all(Array.from({ length: 10 }, () => sell(shop.prisma, 1)));
    assert.equal(sales.filter((sale) => sale === 'sold').length, 7);
    assert.equal(await left(), 0);
  });

  test('fault: COMMIT is done and its answer is lost, and one is sold', async () => {
    const lines = await faultLines(servers);
    const unlucky = createClient(lines);
    await shop.prisma.stock.create({ data: { id: 1, quantity: 7 } });
    const dropped = lines.dropConnection({ at: 'commit' });
    assert.equal(await sell(unlucky.prisma, 1), 'sold');
    await dropped;
    assert.equal(await left(), 6);
    await unlucky.close();
    await lines.close();
  });
});
