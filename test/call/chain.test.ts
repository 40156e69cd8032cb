import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock, type LockOptions, type LockTx } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { aroundScripts } from '../support/around-scripts.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { proxied } from '../support/proxied.js';
import { describeWithShop, gate, Shop, type ShopClient, STAYS } from '../support/shop.js';
import { slowCommit } from './slow-commit.js';

describeWithShop('turns that follow each other on one connection', () => {
  const shop = new Shop();

  /** A sale that reads before it writes; resolves to what it had read. */
  function sale(prisma: ShopClient, key: string, id: number, options: LockOptions = {}) {
    return prisma.$withLock(
      key,
      async (tx) => {
        const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
        await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
        return quantity;
      },
      options,
    );
  }

  /** A turn that is at work until it is told to end, with callers behind it. */
  async function atWork(
    prisma: ShopClient,
    key: string,
    work: (tx: LockTx<ShopClient>) => unknown,
    options: LockOptions = {},
  ) {
    const [begun, ends] = [gate(), gate()];
    const held = prisma.$withLock(
      key,
      async (tx) => {
        begun.open();
        await ends.opened;
        return await work(tx);
      },
      { timeout: 30_000, ...options },
    );
    held.catch(() => {});
    await begun.opened;
    return { held, end: ends.open };
  }

  const LEVELS = [undefined, 'RepeatableRead', 'Serializable'] as const;

  test.each(LEVELS)('each sees the one before it, on the same connection, at isolation level %s', async (level) => {
    const { id, key } = await shop.product(40);
    const { prisma } = shop.client(STAYS);
    const pids = new Set<number>();
    const options = level === undefined ? {} : { isolationLevel: level };
    const turn = () =>
      prisma.$withLock(
        key,
        async (tx) => {
          const [{ pid }] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
          pids.add(pid);
          const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
          await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
        },
        options,
      );
    const first = await atWork(prisma, key, () => {});
    const others = Array.from({ length: 12 }, turn);
    first.end();
    await Promise.all(others);
    expect((await shop.row(id))?.quantity).toBe(28);
    expect(pids.size).toBe(1);
  });

  test('a COMMIT that did not reach Postgres: it is rolled back, and the next one goes on', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const first = await atWork(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 0 } }));
    const next = sale(prisma, key, id);
    const cut = proxy.cutBeforeCommit();
    first.end();
    await cut;
    await expect(first.held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect(await next).toBe(10);
  });

  test('a COMMIT whose answer was lost: it is found to have held, and the next one sees it', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const first = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      return 'sold';
    });
    const next = sale(prisma, key, id);
    const cut = proxy.cutAfterCommit();
    first.end();
    await cut;
    expect(await first.held).toBe('sold');
    expect(await next).toBe(5);
  });

  test.each(['23514', '40001'])('a COMMIT that is refused with %s: the next one begins by itself', async (code) => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const slow = await slowCommit(shop, code);
    await slow.goOn();
    const first = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      await tx.$executeRawUnsafe(slow.insert(true));
    });
    const next = sale(prisma, key, id);
    first.end();
    await expect(first.held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code } });
    expect(await next).toBe(10);
  });

  test('behind a COMMIT whose outcome is being looked up, all go on', async () => {
    const { id, key } = await shop.product(10);
    const { hostname: host, port } = new URL(inject('postgres').app);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    shop.closeLater(() => proxy.close());
    const pool = new pg.Pool({ connectionString: proxy.url(inject('postgres').app) });
    pool.on('error', () => {});
    shop.closeLater(() => pool.end());
    // The rescue connection has no server, so the outcome is looked up for as long as that may take.
    const rescue = new PrismaPg({ connectionString: 'postgresql://nobody@127.0.0.1:1/none' });
    const client = new PrismaClient({ adapter: new PrismaPg(pool) });
    const prisma = client.$extends(fencedLock({ redis: shop.redis(), rescue, ...STAYS })) as ShopClient;
    const first = await atWork(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    let over = false;
    const told = () => {
      over = true;
    };
    first.held.then(told, told);
    const others = Array.from({ length: 4 }, () => sale(prisma, key, id));
    const cut = proxy.cutAfterCommit();
    first.end();
    await cut;
    await Promise.all(others);
    expect(over).toBe(false);
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  // The connection belongs to the turn before, too, until its COMMIT is answered.
  test('one behind a long COMMIT that gives up does not break that COMMIT', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, events } = shop.client(STAYS);
    const slow = await slowCommit(shop);
    const first = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await tx.$executeRawUnsafe(slow.insert());
      return 'sold';
    });
    const caller = new AbortController();
    const next = sale(prisma, key, id, { signal: caller.signal });
    first.end();
    await shop.blocked('COMMIT');
    caller.abort(new Error('enough'));
    await expect(next).rejects.toThrow();
    // Longer than an admission that was given up may stay without an answer before its connection is closed.
    await pause(3_000);
    await slow.goOn();
    expect(await first.held).toBe('sold');
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(events.map(({ type }) => type)).not.toContain('commit-resolved');
  });

  test('a bystander that waits for the only connection of the pool has it between two turns', async () => {
    const { id, key } = await shop.product(100);
    const { prisma, plain } = shop.client({ ...STAYS, pool: { max: 1 } });
    const first = await atWork(prisma, key, () => {});
    let done = 0;
    const turns = Array.from({ length: 64 }, () => sale(prisma, key, id).then(() => done++));
    const bystander = plain.stock.count().then(() => done);
    first.end();
    expect(await bystander).toBeLessThan(8);
    await Promise.all(turns);
    expect((await shop.row(id))?.quantity).toBe(36);
  });

  test('backends that are ended at any moment: who succeeded has sold one, and nobody else', async () => {
    const { id, key } = await shop.product(1_000);
    const application_name = `chain ${randomUUID()}`;
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const pool = new pg.Pool({ connectionString: inject('postgres').app, max: 4, application_name });
    pool.on('connect', (connection) => connection.on('error', () => {}));
    pool.on('error', () => {});
    shop.closeLater(() => pool.end());
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) }).$extends(
      fencedLock({ redis: shop.redis(), rescue, ...STAYS }),
    ) as ShopClient;
    const settled = Promise.allSettled(Array.from({ length: 80 }, () => sale(prisma, key, id)));
    let over = false;
    void settled.then(() => {
      over = true;
    });
    while (!over) {
      await pause(Math.random() * 25);
      await shop.admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [
        application_name,
      ]);
    }
    const sold = (await settled).filter(({ status }) => status === 'fulfilled').length;
    expect((await shop.row(id))?.quantity).toBe(1_000 - sold);
  });
});

describeWithShop('an admission beside the look in Redis', () => {
  const shop = new Shop();

  /** A Redis client whose answers to a look are kept back until the gate opens. */
  function heldLook() {
    const redis = shop.redis();
    const looked = gate();
    aroundScripts(redis, async ({ send }) => {
      const answer = await send();
      await looked.opened;
      return answer;
    });
    return { redis, looked };
  }

  /** The client's transactions that are open now. */
  function watched(redis: ReturnType<Shop['redis']>) {
    const application_name = `beside ${randomUUID()}`;
    const pool = new pg.Pool({ connectionString: inject('postgres').app, application_name });
    shop.closeLater(() => pool.end());
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    const prisma = plain.$extends(fencedLock({ redis, ...STAYS })) as ShopClient;
    const open = async () => {
      const { rowCount } = await shop.admin.query(
        'SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND xact_start IS NOT NULL',
        [application_name],
      );
      return rowCount ?? 0;
    };
    /** The last statement of each of its idle connections. */
    const lastOf = async () => {
      const { rows } = await shop.admin.query<{ query: string }>(
        "SELECT query FROM pg_stat_activity WHERE application_name = $1 AND state = 'idle'",
        [application_name],
      );
      return rows.map(({ query }) => query);
    };
    return { prisma, plain, open, lastOf, pool };
  }

  test('is rolled back where Redis says no: whoever waits holds no connection', async () => {
    const { key } = await shop.product(10);
    const holder = shop.client(STAYS).prisma;
    const lock = await holder.$lock(key);
    const { redis, looked } = heldLook();
    const { prisma, plain, open, lastOf, pool } = watched(redis);
    // A connection that has to be made first may come after the look's time.
    await plain.stock.count();
    // Its beginning goes out as soon as it has a connection; only then Redis says no.
    pool.once('acquire', () => setImmediate(looked.open));
    const waiting = prisma.$withLock(key, () => 'in');
    await eventually('it is rolled back', async () => (await lastOf()).includes('ROLLBACK'));
    expect(await open()).toBe(0);
    // And the holder's next transaction is not in its way.
    expect(await lock.$transaction(() => 'works')).toBe('works');
    await lock.release();
    expect(await waiting).toBe('in');
  });
});
