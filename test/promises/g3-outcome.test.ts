import { PrismaPg } from '@prisma/adapter-pg';
import { describe, expect, inject, test } from 'vitest';
import { CommitUnknownError, type LockOptions, type LockTx, TransactionAbortedError } from '../../src/index.js';
import { forget } from '../call/handle-work.js';
import { busy } from '../support/busy.js';
import { eventually } from '../support/eventually.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { proxied } from '../support/proxied.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';

describeWithShop('G3: released only when the outcome is known', () => {
  const shop = new Shop();
  const app = () => inject('postgres').app;

  test('nobody else gets the lock before the COMMIT has been answered', async () => {
    const { id, key } = await shop.product(10);
    const holder = await proxied(shop, app());
    const contender = shop.client().prisma;
    const onItsWay = gate();
    const remove = holder.proxy.onData('toServer', (_, seen) => {
      if (!seen.commit) return 'forward';
      onItsWay.open();
      remove();
      return 'hold';
    });
    const held = holder.prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    await onItsWay.opened;
    expect(await contender.$tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    // Kept out by its lease, and not by the admission alone.
    expect(await shop.redis().keys(`*${key}*`)).toHaveLength(1);
    holder.proxy.resume();
    await held;
    const seen = await contender.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    expect(seen.quantity).toBe(9);
  });

  type Work = (tx: LockTx<ShopClient>, key: string, caller: AbortController) => unknown;
  const ENDS: Record<string, readonly [Work, LockOptions?]> = {
    'a throw': [() => Promise.reject(new Error('no sale'))],
    'a timeout': [() => new Promise(() => {}), { timeout: 100 }],
    'a timeout in a statement': [(tx) => tx.$queryRaw`SELECT pg_sleep(20)::text`, { timeout: 100 }],
    "the caller's signal": [
      (_, __, caller) => {
        caller.abort(new Error('no sale'));
        return new Promise(() => {});
      },
    ],
    'a killed backend': [
      async (tx) => {
        const [own] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
        await shop.admin.query('SELECT pg_terminate_backend($1, 5000)', [own.pid]);
        await tx.stock.count();
      },
    ],
    'a swallowed error of SQL': [(tx) => tx.$queryRaw`SELECT 1 / 0`.catch(() => {})],
    'a lost lease': [(_, key) => forget(shop, key).then(() => new Promise(() => {})), { leaseTime: 300 }],
  };

  describe.each<[string, (connectionString: string) => PrismaPg]>([
    ['a pool of pg', (connectionString) => new PrismaPg({ connectionString })],
    ['no pool of pg', (connectionString) => new PoollessPg({ connectionString })],
  ])('with an adapter that has %s', (_, adapterOf) => {
    test.each(Object.entries(ENDS))('after %s it is rolled back, and the next one finds it so', async (_, end) => {
      const { id, key } = await shop.product(10);
      const caller = new AbortController();
      const sell = async (tx: LockTx<ShopClient>) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        await end[0](tx, key, caller);
      };
      const options = { signal: caller.signal, ...end[1] };
      const { prisma } = shop.client({ adapter: adapterOf(app()) });
      await expect(prisma.$withLock(key, sell, options)).rejects.toThrow();
      const after = await shop.client().prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
      expect(after.quantity).toBe(10);
    });
  });

  test('a COMMIT that the server refuses is reported as rolled back, with what the server said', async () => {
    const { id, key } = await shop.product(10);
    const entry = { key, token: 0n, before: 0, after: 0, worker: '', once: key };
    await shop.admin.query(`INSERT INTO "Ledger" (key, token, before, after, worker, once) VALUES ($1,0,0,0,'',$1)`, [
      key,
    ]);
    const held = shop.client().prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      await tx.ledger.create({ data: entry });
    });
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, cause: { code: '23505' } });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('a call that is struck while it waits for a connection settles, though that connection then goes silent', async () => {
    const { key } = await shop.product(10);
    const { prisma, plain, proxy } = await proxied(shop, app(), { pool: { max: 1 } });
    const abort = new AbortController();
    const { letGo } = await busy(plain);
    proxy.onData('toServer', (data) => (data.includes('fenced_lock.admit') ? 'hold' : 'forward'));
    const held = prisma.$withLock(key, () => 'in', { signal: abort.signal, maxWait: 10_000 });
    const settled = held.catch((error: unknown) => error);
    const redis = shop.redis();
    await eventually('it has its lease', async () => (await redis.keys(`*${key}*`)).length === 1);
    abort.abort('closing time');
    await letGo();
    expect(await settled).toBe('closing time');
  });

  test('a connection that goes silent in mid-work is rolled back within its timeout', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, app());
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        proxy.silence();
        await tx.stock.update({ where: { id }, data: { quantity: 8 } });
      },
      { timeout: 300 },
    );
    await expect(held).rejects.toBeInstanceOf(TransactionAbortedError);
    const next = await shop.client().prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    expect(next.quantity).toBe(10);
  });
});

describeWithShop('G3 through a crash of Postgres', () => {
  let server: PostgresServer;
  let app = '';
  const shop = new Shop(() => ({ postgres: app, admin: server.url, redis: inject('redis').url as string }));

  test.beforeAll(async () => {
    server = await startPostgres();
    app = await setUpShop(server);
    shop.closeLater(() => server.stop());
  });

  /** The key has had a turn, so its row is older than the token of the next. */
  async function usedProduct() {
    const product = await shop.product(10);
    await shop.client().prisma.$withLock(product.key, () => {});
    return product;
  }

  test('a COMMIT whose answer was lost is found by the history of its key after a crash', async () => {
    const { id, key } = await usedProduct();
    const { prisma, proxy } = await proxied(shop, app);
    const crashed = proxy.cutAfterCommit().then(() => server.killHard());
    const held = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    await crashed;
    await server.start();
    expect((await held).quantity).toBe(9);
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('a transaction that was lost in a crash is reported as rolled back, though its xid is used again', async () => {
    const { id, key } = await usedProduct();
    const { prisma, proxy } = await proxied(shop, app);
    const crashed = proxy.cutBeforeCommit().then(() => server.killHard());
    const held = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    const outcome = held.catch((error: unknown) => error);
    await crashed;
    await server.start();
    // Others commit under the xids that were lost, ours among them.
    for (let turn = 0; turn < 5; turn++)
      await shop.admin.query('UPDATE "Stock" SET product = product WHERE id = $1', [id]);
    expect(await outcome).toBeInstanceOf(TransactionAbortedError);
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('where Postgres stays away the outcome is reported as unknown, with the id of the transaction', async () => {
    const { id, key } = await usedProduct();
    const { prisma, proxy } = await proxied(shop, app);
    const crashed = proxy.cutAfterCommit().then(() => server.killHard());
    const held = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    const outcome = held.catch((error: unknown) => error);
    await crashed;
    const error = await outcome;
    await server.start();
    expect(error).toBeInstanceOf(CommitUnknownError);
    expect(error).toMatchObject({ code: 'COMMIT_UNKNOWN', key, xid: expect.stringMatching(/^\d+$/) });
  });

  test('callers whose Postgres freezes in mid-work hear of it while that is still frozen, none behind another', async () => {
    const products = await Promise.all(Array.from({ length: 5 }, usedProduct));
    const { prisma } = shop.client();
    const inside = products.map(() => gate());
    const goOn = gate();
    const held = products.map(({ id, key }, index) =>
      prisma.$withLock(
        key,
        async (tx) => {
          inside[index]?.open();
          await goOn.opened;
          await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        },
        { timeout: 1_000 },
      ),
    );
    const outcomes = Promise.allSettled(held);
    await Promise.all(inside.map(({ opened }) => opened));
    server.freeze();
    try {
      goOn.open();
      for (const outcome of await outcomes)
        expect(outcome).toMatchObject({ reason: expect.any(TransactionAbortedError) });
    } finally {
      server.thaw();
    }
    for (const { id } of products) expect((await shop.row(id))?.quantity).toBe(10);
    // One behind another they would take two seconds each, and more.
  }, 12_000);
});
