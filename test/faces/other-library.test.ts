import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import Cursor from 'pg-cursor';
import { describe, expect, inject, test } from 'vitest';
import { type FencedLocksOptions, fencedLocks } from '../../src/faces/pg.js';
import { CommitUnknownError, HookFailedError, InvalidOptionError, TransactionAbortedError } from '../../src/index.js';
import { guardedShop } from '../support/faces.js';
import { proxyTo } from '../support/proxied.js';
import { withDatabase } from '../support/servers/index.js';
import { describeWithShop, gate } from '../support/shop.js';

type Client = Pick<pg.ClientBase, 'query'>;
type Work<R> = (client: Client) => Promise<R>;

/** As libraries begin and end a transaction on a pool of pg. */
async function transaction<R>(pool: pg.Pool, work: Work<R>, ...begin: string[]): Promise<R> {
  const client = await pool.connect();
  try {
    for (const text of begin.length > 0 ? begin : ['BEGIN']) await client.query(text);
    const result = await work(client);
    await client.query('COMMIT;');
    return result;
  } catch (error) {
    await client.query('ROLLBACK;');
    throw error;
  } finally {
    client.release();
  }
}

/** The same by callbacks. */
function byCallbacks<R>(pool: pg.Pool, work: Work<R>): Promise<R> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client, release) => {
      if (client === undefined) return reject(error);
      const ends = (text: string, then: () => void) =>
        client.query(text, (error: Error | undefined) => {
          release(error);
          if (error) reject(error);
          else then();
        });
      client.query('START TRANSACTION', (error: Error | undefined) => {
        if (error) return reject(error);
        work(client).then(
          (result) => ends('COMMIT', () => resolve(result)),
          (error: unknown) => ends('ROLLBACK', () => reject(error)),
        );
      });
    });
  });
}

const set = (client: Client, id: number, quantity: number) =>
  client.query('UPDATE "Stock" SET quantity = $2 WHERE id = $1', [id, quantity]);

async function sell(client: Client, id: number): Promise<number> {
  const { rows } = await client.query<{ quantity: number }>('SELECT quantity FROM "Stock" WHERE id = $1', [id]);
  const left = (rows[0]?.quantity ?? 0) - 1;
  await set(client, id, left);
  return left;
}

const NAME = 'other_library';

describeWithShop('another library, on the pool of the locks', () => {
  const shop = guardedShop(NAME);

  function locksOf(settings: pg.PoolConfig = {}, options: Partial<Omit<FencedLocksOptions, 'pool'>> = {}) {
    const own = shop.pool(settings);
    const locks = fencedLocks({ pool: own, redis: shop.redis(), ...options });
    shop.closeLater(() => locks.close());
    const { pool, withLock } = locks;
    return { own, locks, pool, withLock };
  }

  // One connection: a transaction on any other one would wait for it for ever.
  const { own, locks, pool, withLock } = locksOf({ max: 1 });
  const two = locksOf({ max: 2 });
  const db = drizzle(pool);
  const left = async (id: number) => (await shop.row(id))?.quantity;
  const tokenOf = async (client: Client) => {
    const { rows } = await client.query("SELECT current_setting('fenced_lock.token') AS token");
    return (rows[0] as { token: string }).token;
  };

  const LIBRARIES: Record<string, <R>(work: Work<R>) => Promise<R>> = {
    'with promises': (work) => transaction(pool, work),
    'with callbacks': (work) => byCallbacks(pool, work),
    'with a level of its own, which is that of the lock': (work) =>
      transaction(pool, work, 'START TRANSACTION;', 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED;'),
    'with a read before it begins': (work) => transaction(two.pool, work, 'SELECT 1', 'begin'),
    Drizzle: (work) => db.transaction((tx) => work({ query: clientOf(tx).query } as Client)),
  };

  /** The connection that Drizzle's transaction is on. */
  const clientOf = (tx: unknown): Client => {
    const { client } = (tx as { session: { client: Client } }).session;
    return { query: client.query.bind(client) } as Client;
  };

  test.each(Object.entries(LIBRARIES))('%s: its transaction is that of the lock', async (name, begins) => {
    const { id, key } = await shop.product(10);
    const locked = name.includes('before') ? two.withLock : withLock;
    const sold = () =>
      locked(key, async (_, { token }) => {
        const left = await begins(async (client) => {
          expect(await tokenOf(client)).toContain(String(token));
          return await sell(client, id);
        });
        return { left };
      });
    const all = await Promise.all(Array.from({ length: 10 }, sold));
    expect(all.map(({ left }) => left)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    expect(await left(id)).toBe(0);
    expect([own.totalCount, own.waitingCount]).toEqual([1, 0]);
  });

  test('Drizzle: its relational parts work, a savepoint goes back, and its own error is told', async () => {
    const { id, key } = await shop.product(10);
    await withLock(key, () =>
      db.transaction(async (tx) => {
        await tx.execute(sql`UPDATE "Stock" SET quantity = 5 WHERE id = ${id}`);
        const inner = tx.transaction(async (inner) => {
          await inner.execute(sql`UPDATE "Stock" SET quantity = 4 WHERE id = ${id}`);
          inner.rollback();
        });
        await expect(inner).rejects.toThrow('ollback');
      }),
    );
    expect(await left(id)).toBe(5);
    const wrong = withLock(key, () => db.transaction((tx) => tx.execute(sql`SELECT 1 / 0`)));
    await expect(wrong).rejects.toMatchObject({ cause: { code: '22012' } });
  });

  test('a cursor of its is read on the connection of the lock', async () => {
    const { key } = await shop.product(1);
    const rows = await withLock(key, () =>
      transaction(pool, (client) => client.query(new Cursor('SELECT n FROM generate_series(1, 3) AS n')).read(10)),
    );
    expect(rows).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const beside = await two.withLock(key, async () => {
      const client = await two.pool.connect();
      const rows = await client.query(new Cursor('SELECT n FROM generate_series(1, 3) AS n')).read(10);
      client.release();
      return await transaction(two.pool, async () => rows);
    });
    expect(beside).toHaveLength(3);
  });

  test('what it does otherwise in the function: one transaction is committed, and the error says which rule', async () => {
    const { id, key } = await shop.product(10);
    const noSale = new Error('no sale');
    const writes = (quantity: number) => transaction(two.pool, (client) => set(client, id, quantity));
    const fails = async (client: Client) => {
      await set(client, id, 1);
      throw noSale;
    };
    let later: Promise<unknown> = Promise.resolve();
    const aborted = { constructor: TransactionAbortedError, reason: 'ended' };
    const WAYS: ReadonlyArray<readonly [work: () => unknown, left: number, error: unknown]> = [
      // None.
      [() => 'nothing', 10, aborted],
      // One that was not awaited.
      [
        async () => {
          later = transaction(two.pool, (client) => sleep(20).then(() => set(client, id, 1)));
          later.catch(() => {});
          await sleep(1);
        },
        10,
        { constructor: TransactionAbortedError, reason: 'not-awaited' },
      ],
      // One that was rolled back.
      [() => transaction(two.pool, fails), 10, noSale],
      [() => transaction(two.pool, fails).catch(() => {}), 10, aborted],
      // One that is given back without an end.
      [
        async () => {
          const client = await two.pool.connect();
          await client.query('BEGIN');
          await set(client, id, 1);
          client.release();
        },
        10,
        aborted,
      ],
      // A second one.
      [() => writes(9).then(() => writes(1)), 9, { constructor: HookFailedError }],
      // What throws behind it.
      [
        async () => {
          await writes(8);
          throw noSale;
        },
        8,
        { constructor: HookFailedError, errors: [noSale] },
      ],
      // Both the client and the library.
      [
        async () => await two.withLock(key, (client) => set(client, id, 1)).then(() => writes(1)),
        8,
        { code: 'INSIDE_TRANSACTION' },
      ],
      // Statements in one text with BEGIN or COMMIT.
      [
        () => transaction(two.pool, async () => {}, `BEGIN; UPDATE "Stock" SET quantity = 1`),
        8,
        { code: 'INSIDE_TRANSACTION' },
      ],
      [
        () => transaction(two.pool, (client) => client.query('COMMIT; UPDATE "Stock" SET quantity = 1')),
        8,
        { code: 'INSIDE_TRANSACTION' },
      ],
    ];
    for (const [work, quantity, error] of WAYS) {
      const told = await two.withLock(key, () => work()).catch((error: unknown) => error);
      if (error === noSale) expect(told).toBe(noSale);
      else expect(told, String(work)).toMatchObject(error as object);
      expect(await left(id), String(work)).toBe(quantity);
    }
    await expect(later).rejects.toThrow();
  });

  test('reads beside the transaction pass; writes are refused, until it has committed', async () => {
    const { id, key } = await shop.product(10);
    const update = `UPDATE "Stock" SET quantity = 1 WHERE id = ${id}`;
    const read = `SELECT quantity FROM "Stock" WHERE id = ${id}`;
    await two.withLock(key, async () => {
      await transaction(two.pool, async (client) => {
        await set(client, id, 9);
        expect((await two.pool.query(read)).rows).toEqual([{ quantity: 10 }]);
        const other = await two.pool.connect();
        expect((await other.query(read)).rows).toEqual([{ quantity: 10 }]);
        for (const sent of [two.pool.query(update), other.query(update)])
          await expect(sent).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
        other.release();
        const called = new Promise((_, reject) => {
          two.pool.query(update, [], reject);
        });
        await expect(called).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
      });
      expect((await two.pool.query(read)).rows).toEqual([{ quantity: 9 }]);
      await two.pool.query(update);
    });
    expect(await left(id)).toBe(1);
  });

  const MODES: ReadonlyArray<readonly [begin: string[], expected: object]> = [
    [['BEGIN ISOLATION LEVEL SERIALIZABLE'], { option: 'isolationLevel' }],
    [['BEGIN', 'SET TRANSACTION ISOLATION LEVEL repeatable  read'], { option: 'isolationLevel' }],
    [['START TRANSACTION READ ONLY'], { option: 'accessMode' }],
    [['BEGIN', 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY'], { option: 'accessMode' }],
    [["SET statement_timeout = '1s'", 'BEGIN'], { code: 'INSIDE_TRANSACTION' }],
    [['BEGIN', 'BEGIN'], { code: 'INSIDE_TRANSACTION' }],
  ];
  test.each(MODES)('%o is refused', async (begin, expected) => {
    const { id, key } = await shop.product(10);
    const sold = two.withLock(key, () => transaction(two.pool, (client) => set(client, id, 1), ...begin));
    await expect(sold).rejects.toMatchObject(expected);
    expect(await left(id)).toBe(10);
  });

  test('the level of the lock is that of its transaction', async () => {
    const { key } = await shop.product(1);
    const level = (...begin: string[]) =>
      withLock(key, () => transaction(pool, (client) => client.query('SHOW transaction_isolation'), ...begin), {
        isolationLevel: 'Serializable',
      });
    for (const begin of ['BEGIN', 'start transaction isolation level serializable'])
      expect((await level(begin)).rows).toEqual([{ transaction_isolation: 'serializable' }]);
    await expect(level('BEGIN ISOLATION LEVEL READ COMMITTED')).rejects.toBeInstanceOf(InvalidOptionError);
  });

  test('outside of locks the pool is that of the application, also in a context that a lock has left', async () => {
    const { id, key } = await shop.product(10);
    const [ended, written] = [gate(), gate<unknown>()];
    expect(pool).toBeInstanceOf(pg.Pool);
    expect(pool.options).toBe(own.options);
    await transaction(pool, (client) => set(client, id, 5), 'SET search_path TO public', 'BEGIN READ WRITE');
    await pool.query('UPDATE "Stock" SET quantity = quantity - 1 WHERE id = $1', [id]);
    await withLock(key, async () => {
      void ended.opened.then(() => transaction(pool, (client) => sell(client, id))).then(written.open, written.open);
      await transaction(pool, (client) => sell(client, id));
    });
    ended.open();
    expect(await written.opened).toBe(2);
    expect(await left(id)).toBe(2);
  });

  test('a transaction on the pool of other locks is none of this lock, and stays when that rolls back', async () => {
    const { id, key } = await shop.product(10);
    const [holder, bystander] = [locksOf(), locksOf()];
    const error = new Error('of the work');
    const failed = holder.withLock(key, async () => {
      await transaction(bystander.pool, (client) => set(client, id, 7));
      throw error;
    });
    await expect(failed).rejects.toBe(error);
    expect(await shop.row(id)).toMatchObject({ quantity: 7 });
  });

  test('calls that join work in its transaction, around it and inside, and it is committed once', async () => {
    const { id, key } = await shop.product(10);
    const joins = () => withLock(key, (client) => sell(client as Client, id));
    await withLock(key, () =>
      transaction(pool, async (client) => {
        await sell(client, id);
        await joins();
        await sell(client, id);
      }),
    );
    expect(await left(id)).toBe(7);
    const within = await withLock(key, async () => {
      await withLock(key, () => 'nothing');
      return await withLock(key, () => transaction(pool, (client) => sell(client, id)));
    });
    expect(within).toBe(6);
    expect(await left(id)).toBe(6);
  });

  test('in all that takes a lock: a handle, a try, and once per interval', async () => {
    const { id, key } = await shop.product(10);
    const sold = () => transaction(pool, (client) => sell(client, id));
    const handle = await locks.lock(key);
    expect(await handle.$transaction(sold)).toBe(9);
    await expect(handle.$transaction(() => 'nothing')).rejects.toBeInstanceOf(TransactionAbortedError);
    await handle.release();
    expect(await locks.tryWithLock(key, sold)).toEqual({ acquired: true, value: 8 });
    expect(await locks.oncePer(key, 3_600_000, sold)).toEqual({ ran: true, value: 7 });
    expect(await left(id)).toBe(7);
  });

  test('work that fails with 40001 in its transaction is run again', async () => {
    const { id, key } = await shop.product(10);
    let runs = 0;
    const work = async (client: Client) => {
      await sell(client, id);
      if (++runs === 1) await client.query("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$");
    };
    await withLock(key, () => transaction(pool, work), { retries: 1 });
    expect([runs, await left(id)]).toEqual([2, 9]);
  });

  describe('is told, as the caller of the lock is, what became of its COMMIT', () => {
    /** What the library and the caller get. */
    async function told(
      as: 'app' | 'admin',
      lose: (proxy: Awaited<ReturnType<typeof proxyTo>>) => unknown,
      also?: Work<unknown>,
    ) {
      const { id, key } = await shop.product(10);
      const url = withDatabase(inject('postgres')[as], NAME);
      const proxy = await proxyTo(url);
      const rescue = shop.pool({ connectionString: url });
      const { pool, withLock } = locksOf({ connectionString: proxy.url(url) }, { rescue });
      shop.closeLater(() => proxy.close());
      void lose(proxy);
      const library = gate<unknown>();
      const sold = withLock(key, async () => {
        const sold = transaction(pool, async (client) => {
          await set(client, id, 9);
          await also?.(client);
          return 'sold';
        });
        sold.then(library.open, library.open);
        return await sold;
      });
      const caller = await sold.catch((error: unknown) => error);
      return { library: await library.opened, caller, left: await left(id) };
    }

    test('committed', async () => {
      const told1 = await told('app', (proxy) => proxy.cutAfterCommit());
      expect(told1).toEqual({ library: 'sold', caller: 'sold', left: 9 });
    });

    test('rolled back', async () => {
      const { library, caller, left } = await told('app', (proxy) => proxy.cutBeforeCommit());
      expect(caller).toBeInstanceOf(TransactionAbortedError);
      expect([library, left]).toEqual([caller, 10]);
    });

    test('refused by Postgres', async () => {
      const entry = `INSERT INTO "Ledger" (key, token, before, after, worker, once) VALUES ('', 0, 0, 0, '', 'twice')`;
      const twice = (client: Client) => client.query(entry).then(() => client.query(entry));
      const { library, caller, left } = await told('app', () => {}, twice);
      expect(caller).toMatchObject({ constructor: TransactionAbortedError, cause: { code: '23505' } });
      // It has classes of its own for what Postgres says.
      expect([library, left]).toEqual([(caller as Error).cause, 10]);
    });

    test('unknown', async () => {
      const forget = async (client: Client) => {
        await shop.admin.query('UPDATE fenced_lock.epoch SET id = gen_random_uuid()');
        await client.query(
          "DELETE FROM fenced_lock.admission WHERE token = current_setting('fenced_lock.token')::bigint",
        );
      };
      const { library, caller } = await told('admin', (proxy) => proxy.cutAfterCommit(), forget);
      expect(caller).toBeInstanceOf(CommitUnknownError);
      expect(library).toBe(caller);
    });
  });
});
