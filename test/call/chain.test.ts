import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock, type LockOptions, LockTimeoutError, type LockTx } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { aroundScripts } from '../support/around-scripts.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { proxied } from '../support/proxied.js';
import { withDatabase, withUser } from '../support/servers/index.js';
import { describeWithShop, gate, Shop, type ShopClient, STAYS } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { slowAdmission } from './slow-admission.js';
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

  // For what would be in the way of every lock of the database.
  const ownUrl = withDatabase(inject('postgres').admin, `chain_${randomUUID().replaceAll('-', '')}`);
  const ownApp = withUser(ownUrl, 'shop_app', 'shop_app');
  const own = new Shop(() => ({ postgres: ownApp, admin: ownUrl, redis: inject('redis').url as string }));
  async function ownDatabase() {
    const name = new URL(ownUrl).pathname.slice(1);
    await shop.admin.query(`CREATE DATABASE ${name}`);
    shop.closeLater(async () => {
      await own.close();
      await shop.admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    });
    await setUpShop({ url: ownUrl, urlFor: (user, password) => withUser(ownUrl, user, password) });
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

  test('one that waits only in line has no transaction; the COMMIT before it takes its admission along', async () => {
    const { id, key } = await shop.product(10);
    const application_name = `chain ${randomUUID()}`;
    const { prisma } = shop.client({ ...STAYS, pool: { application_name } });
    const open = async () => {
      const { rowCount } = await shop.admin.query(
        'SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND xact_start IS NOT NULL',
        [application_name],
      );
      return rowCount;
    };
    const first = await atWork(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    const next = sale(prisma, key, id);
    expect(await open()).toBe(1);
    first.end();
    expect(await next).toBe(9);
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

  test('a connection that is cut between the answers to COMMIT and to the admission: the next one begins by itself', async () => {
    await ownDatabase();
    const admissions = await slowAdmission(own);
    const { id, key } = await own.product(10);
    const { prisma, proxy } = await proxied(own, ownApp);
    const first = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      return 'sold';
    });
    const next = sale(prisma, key, id);
    await admissions.hold();
    first.end();
    expect(await first.held).toBe('sold');
    proxy.reset();
    await admissions.goOn();
    expect(await next).toBe(5);
    expect((await own.row(id))?.quantity).toBe(4);
  });

  test('a connection that is cut once the next one is at work: that one is rolled back, and the one behind it goes on', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const first = await atWork(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 5 } }));
    const next = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      proxy.reset();
      await tx.stock.update({ where: { id }, data: { quantity: 1 } });
    });
    const last = sale(prisma, key, id);
    first.end();
    await first.held;
    await expect(next).rejects.toThrow();
    expect(await last).toBe(5);
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

  test('a call that runs again behind a refused COMMIT has one turn before it, however many callers wait', async () => {
    const { id, key } = await shop.product(100);
    const { prisma } = shop.client(STAYS);
    const slow = await slowCommit(shop, '40001');
    await slow.goOn();
    const runs: string[] = [];
    const first = await atWork(
      prisma,
      key,
      async (tx) => {
        const refuse = !runs.includes('other');
        runs.push('first');
        await tx.$executeRawUnsafe(slow.insert(refuse));
      },
      { retries: 100 },
    );
    const others = Array.from({ length: 8 }, () =>
      prisma.$withLock(key, async (tx) => {
        const isFirstOther = !runs.includes('other');
        runs.push('other');
        await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
        // Until the first one waits for the key's row.
        if (isFirstOther) await shop.blocked('admit');
      }),
    );
    first.end();
    await Promise.all([first.held, ...others]);
    expect(runs.slice(0, runs.lastIndexOf('first')).filter((who) => who === 'other')).toHaveLength(1);
    expect((await shop.row(id))?.quantity).toBe(92);
  });

  test.each([
    ['with a wait time', '$withLock', { waitTime: 50 }],
    ['that does not wait', '$tryWithLock', {}],
  ] as const)(
    'a call %s whose COMMIT was refused, and that cannot run again, is told the refusal',
    async (_, verb, options) => {
      const { key } = await shop.product(10);
      const { prisma } = shop.client(STAYS);
      const slow = await slowCommit(shop, '40001');
      const first = prisma[verb](key, (tx) => tx.$executeRawUnsafe(slow.insert(true)), { ...options, retries: 100 });
      first.catch(() => {});
      await shop.blocked('COMMIT');
      const [begun, over] = [gate(), gate()];
      const next = prisma.$withLock(key, () => {
        begun.open();
        return over.opened;
      });
      await slow.goOn();
      await begun.opened;
      await expect(first).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '40001' } });
      over.open();
      await next;
    },
  );

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

  test("a call that runs again, and is aborted, rejects with its signal's reason", async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const slow = await slowCommit(shop, '40001');
    const caller = new AbortController();
    const [begun, over] = [gate(), gate()];
    const options = { retries: 100, signal: caller.signal };
    const first = prisma.$withLock(key, (tx) => tx.$executeRawUnsafe(slow.insert(true)), options);
    first.catch(() => {});
    await shop.blocked('COMMIT');
    const next = prisma.$withLock(key, () => {
      begun.open();
      return over.opened;
    });
    await slow.goOn();
    await begun.opened;
    await shop.blocked('admit');
    // As that of a call that waits for another lock, which has ended this one's signal.
    const reason = new LockTimeoutError('another', '1 ms');
    caller.abort(reason);
    await expect(first).rejects.toBe(reason);
    over.open();
    await next;
  });

  test("a call that is to run again, and is aborted while its conflict is rolled back, rejects with its signal's reason", async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const caller = new AbortController();
    const reason = new Error('the caller has gone');
    const conflict = async (tx: LockTx<ShopClient>) => {
      try {
        await tx.$executeRaw`DO $$ BEGIN RAISE 'conflict' USING ERRCODE = 'serialization_failure'; END $$`;
      } finally {
        // Before the answer to ROLLBACK is read.
        setImmediate(() => caller.abort(reason));
      }
    };
    await expect(prisma.$withLock(key, conflict, { retries: 5, signal: caller.signal })).rejects.toBe(reason);
  });

  test('a call that runs again has its wait time anew', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const slow = await slowCommit(shop, '40001');
    const [begun, over] = [gate(), gate()];
    let hasNextBegun = false;
    const options = { waitTime: 1_000, retries: 100 };
    const first = prisma.$withLock(key, (tx) => tx.$executeRawUnsafe(slow.insert(!hasNextBegun)), options);
    first.catch(() => {});
    await shop.blocked('COMMIT');
    await pause(options.waitTime);
    const next = prisma.$withLock(key, () => {
      hasNextBegun = true;
      begun.open();
      return over.opened;
    });
    await slow.goOn();
    await begun.opened;
    await Promise.race([shop.blockedAgain('admit', 2), first]);
    over.open();
    await Promise.all([first, next]);
  });

  test('a transaction that a swallowed error has aborted: the next one goes on, on the same connection', async () => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const pidIn = async (tx: LockTx<ShopClient>) =>
      (await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`)[0].pid;
    let pid: number | undefined;
    const first = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      pid = await pidIn(tx);
      await tx.$queryRaw`SELECT 1 / 0`.catch(() => {});
    });
    const next = prisma.$withLock(key, async (tx) => [await pidIn(tx), await tx.stock.findUnique({ where: { id } })]);
    first.end();
    await expect(first.held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect(await next).toMatchObject([pid, { quantity: 10 }]);
  });

  test('one that gives up while its admission is under way hears so at once, and the ones behind it go on', async () => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const slow = await slowCommit(shop);
    const first = await atWork(prisma, key, (tx) => tx.$executeRawUnsafe(slow.insert()));
    const caller = new AbortController();
    const next = sale(prisma, key, id, { signal: caller.signal });
    const last = sale(prisma, key, id);
    first.end();
    await shop.blocked('COMMIT');
    caller.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await slow.goOn();
    await first.held;
    expect(await last).toBe(10);
  });

  // The connection belongs to the turn before, too, until its COMMIT is answered.
  test.each([
    ['gives up', (caller: AbortController, _: ShopClient) => caller.abort(new Error('enough'))],
    ['is turned away because the client is closed', (_: AbortController, prisma: ShopClient) => prisma.$locks.close()],
  ])('one behind a long COMMIT that %s does not break that COMMIT', async (_, giveUp) => {
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
    const given = giveUp(caller, prisma);
    await expect(next).rejects.toThrow();
    // Longer than an admission that was given up may stay without an answer before its connection is closed.
    await pause(3_000);
    await slow.goOn();
    expect(await first.held).toBe('sold');
    await given;
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(events.map(({ type }) => type)).not.toContain('commit-resolved');
  });

  test('a COMMIT that is never answered: once its outcome is found the next one goes on, on another connection', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const sell = async (tx: LockTx<ShopClient>) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      return 'sold';
    };
    const first = await atWork(prisma, key, sell, { timeout: 500 });
    const next = sale(prisma, key, id);
    const held = proxy.holdCommitReply();
    first.end();
    await held;
    expect(await first.held).toBe('sold');
    expect(await next).toBe(5);
  });

  test('one behind a COMMIT that is not answered hears LOCK_TIMEOUT when its wait time is over, and does nothing', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, events } = shop.client(STAYS);
    const slow = await slowCommit(shop);
    const first = await atWork(prisma, key, async (tx) => {
      await tx.$executeRawUnsafe(slow.insert());
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    const [next, last] = [sale(prisma, key, id, { waitTime: 700 }), sale(prisma, key, id)];
    first.end();
    await shop.blocked('COMMIT');
    await expect(next).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key });
    await slow.goOn();
    await first.held;
    expect(await last).toBe(9);
    // Nobody was taken for a former holder.
    expect(events.filter(({ type }) => type === 'backend-ended')).toEqual([]);
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

  test('a pool that is ended under them: each is told, and nothing is lost', async () => {
    const { id, key } = await shop.product(100);
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString, max: 2 });
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    const prisma = plain.$extends(
      fencedLock({ redis: shop.redis(), ...STAYS, rescue: new PrismaPg({ connectionString }) }),
    ) as ShopClient;
    const first = await atWork(prisma, key, () => {});
    const turns = Array.from({ length: 20 }, () => sale(prisma, key, id));
    const settled = Promise.allSettled(turns);
    first.end();
    await turns[2];
    await pool.end();
    const results = await settled;
    const sold = results.filter(({ status }) => status === 'fulfilled').length;
    const told = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(sold).toBeGreaterThan(2);
    expect(told.length).toBeGreaterThan(0);
    for (const reason of told) expect(reason).toMatchObject({ code: 'LOCK_UNAVAILABLE', key });
    expect((await shop.row(id))?.quantity).toBe(100 - sold);
    expect(await shop.client(STAYS).prisma.$tryWithLock(key, () => 'in')).toMatchObject({ acquired: true });
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
    const settled = Promise.allSettled(Array.from({ length: 150 }, () => sale(prisma, key, id)));
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

  test('does not begin the work before the look has said yes', async () => {
    const { key } = await shop.product(10);
    const { redis, looked } = heldLook();
    const { prisma } = shop.client({ ...STAYS, redis });
    let begun = false;
    const held = prisma.$withLock(key, () => {
      begun = true;
    });
    await pause(200);
    expect(begun).toBe(false);
    looked.open();
    await held;
    expect(begun).toBe(true);
  });

  test('is what the work goes on with, where the look says yes after it', async () => {
    const postgres = inject('postgres').app;
    // Twenty milliseconds without the lease, and it is given up: a busy machine needs several tries.
    await eventually('a turn has begun once', async () => {
      const { key } = await shop.product(10);
      const { redis, looked } = heldLook();
      const { hostname: host, port } = new URL(postgres);
      const proxy = await startFaultProxy({ host, port: Number(port) });
      shop.closeLater(() => proxy.close());
      const { prisma, plain } = shop.client({ ...STAYS, redis, pool: { connectionString: proxy.url(postgres) } });
      await plain.stock.count();
      let begins = 0;
      proxy.onData('toClient', (data) => {
        if (!data.includes('BEGIN\0')) return 'forward';
        begins++;
        // The answer to the admission is read before that to the look.
        setImmediate(() => setImmediate(looked.open));
        return 'forward';
      });
      const before = looked.opened;
      await prisma.$withLock(key, () => 'in');
      await before;
      return begins === 1;
    });
  });

  test('that finds somebody in the row is asked for again, with the lease in hand', async () => {
    const { key } = await shop.product(10);
    await shop.client(STAYS).prisma.$withLock(key, () => {});
    const blocker = await shop.admin.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT 1 FROM fenced_lock.admission WHERE key = $1 FOR UPDATE', [key]);
    const held = shop.client(STAYS).prisma.$withLock(key, () => 'in');
    await shop.blocked('fenced_lock.admit');
    await pause(100);
    await blocker.query('COMMIT');
    blocker.release();
    expect(await held).toBe('in');
  });
});
