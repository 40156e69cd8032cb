import { drizzle } from 'drizzle-orm/node-postgres';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import Cursor from 'pg-cursor';
import QueryStream from 'pg-query-stream';
import { describe, expect, inject, test } from 'vitest';
import { fencedLocks as drizzleLocks } from '../../src/faces/drizzle.js';
import { fencedLocks as kyselyLocks } from '../../src/faces/kysely.js';
import { type FencedLocksOptions, fencedLocks, type LockClient } from '../../src/faces/pg.js';
import { FACES, type Face } from '../support/faces.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('the lock over a pool of pg', () => {
  const shop = new Shop();

  function locksOf(settings: pg.PoolConfig = {}, options: Partial<Omit<FencedLocksOptions, 'pool'>> = {}) {
    const pool = shop.pool(settings);
    const locks = fencedLocks({ pool, redis: shop.redis(), ...options });
    shop.closeLater(() => locks.close());
    return { locks, own: pool };
  }

  const set = (client: LockClient, id: number, quantity: number) =>
    client.query('UPDATE "Stock" SET quantity = $2 WHERE id = $1', [id, quantity]);
  const left = async (id: number) => (await shop.row(id))?.quantity;
  // One connection: what is left on it by one call, the next one would meet.
  const only = locksOf({ max: 1 });
  const { withLock } = only.locks;

  describe('the client of its function', () => {
    /** As those of template libraries have it. */
    class Statement {
      readonly #id: number;
      constructor(id: number) {
        this.#id = id;
      }
      get text() {
        return 'SELECT $1::int AS id';
      }
      get values() {
        return [this.#id];
      }
    }

    const FORMS: Record<string, (client: LockClient) => Promise<pg.QueryResult>> = {
      'a text and values': (client) => client.query('SELECT $1::int AS id', [7]),
      'a configuration': (client) => client.query({ text: 'SELECT $1::int AS id', values: [7] }),
      'a configuration that is frozen': (client) => client.query(Object.freeze({ text: 'SELECT 7 AS id' })),
      'a configuration with getters': (client) => client.query(new Statement(7)),
      'a configuration with a name, and values beside it': (client) =>
        client.query({ name: 'one', text: 'SELECT $1::int AS id' }, [7]),
      'a callback': (client) =>
        new Promise((resolve, reject) => {
          client.query('SELECT $1::int AS id', [7], (error, result) => (error ? reject(error) : resolve(result)));
        }),
    };

    test.each(Object.entries(FORMS))('takes %s', async (_, send) => {
      const { key } = await shop.product(1);
      expect((await withLock(key, send)).rows).toEqual([{ id: 7 }]);
    });

    test('tells an error to a callback', async () => {
      const { key } = await shop.product(1);
      const fails = (client: LockClient) =>
        new Promise<never>((_, reject) => {
          client.query('SELECT 1 / 0', [], reject);
        });
      await expect(withLock(key, fails)).rejects.toMatchObject({ code: '22012' });
    });

    test('takes cursors and streams, and more when those have ended', async () => {
      const { id, key } = await shop.product(10);
      await withLock(key, async (client) => {
        const cursor = client.query(new Cursor<{ n: number }>('SELECT n FROM generate_series(1, $1) AS n', [250]));
        const read: number[] = [];
        for (let rows = await cursor.read(100); rows.length > 0; rows = await cursor.read(100))
          read.push(...rows.map(({ n }) => n));
        await set(client, id, read.length);
        const early = client.query(new Cursor('SELECT n FROM generate_series(1, 1000) AS n'));
        await early.read(1);
        await early.close();
        let sum = 0;
        const stream = client.query(new QueryStream('SELECT n FROM generate_series(1, 250) AS n', []));
        for await (const { n } of stream as AsyncIterable<{ n: number }>) sum += n;
        expect(sum).toBe(31_375);
        await client.query('SELECT 1');
      });
      expect(await left(id)).toBe(250);
    });

    const CURSORS: Record<string, (client: LockClient) => unknown> = {
      'a cursor': (client) => client.query(new Cursor('SELECT n FROM generate_series(1, 1000) AS n')).read(1),
      'a cursor that was not read': (client) => client.query(new Cursor('SELECT n FROM generate_series(1, 1000) AS n')),
      'a stream': (client) => client.query(new QueryStream('SELECT n FROM generate_series(1, 1000) AS n', [])),
    };

    test.each(Object.entries(CURSORS))('with %s left open: nothing is committed, and nobody waits', async (_, open) => {
      const { id, key } = await shop.product(10);
      const began = performance.now();
      const returns = withLock(key, async (client) => {
        await set(client, id, 1);
        await open(client);
      });
      await expect(returns).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'not-awaited' });
      const noSale = new Error('no sale');
      const throws = withLock(key, async (client) => {
        await set(client, id, 1);
        await open(client);
        throw noSale;
      });
      expect(await throws.catch((error: unknown) => error)).toBe(noSale);
      expect(await left(id)).toBe(10);
      expect(performance.now() - began).toBeLessThan(2_000);
    });

    test('tells the error of a cursor, and rolls back though it is swallowed', async () => {
      const { id, key } = await shop.product(10);
      const sold = withLock(key, async (client) => {
        await set(client, id, 1);
        const cursor = client.query(new Cursor('SELECT 1 / (n - 1) FROM generate_series(1, 2) AS n'));
        await expect(cursor.read(10)).rejects.toMatchObject({ code: '22012' });
      });
      await expect(sold).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
      expect(await left(id)).toBe(10);
    });

    test('takes savepoints', async () => {
      const { id, key } = await shop.product(10);
      await withLock(key, async (client) => {
        await set(client, id, 5);
        await client.query('SAVEPOINT before');
        await set(client, id, 4);
        await client.query('ROLLBACK TO SAVEPOINT before');
      });
      expect(await left(id)).toBe(5);
    });

    const SEND: Record<string, (client: LockClient, text: string) => unknown> = {
      'a text': (client, text) => client.query(text),
      'a cursor': (client, text) => client.query(new Cursor(text)).read(1),
      'a stream': (client, text) => client.query(new QueryStream(text, [])),
      'a query of pg': (client, text) => client.query(new pg.Query(text)),
    };

    test.each(
      Object.entries(SEND).flatMap(([how, send]) =>
        ['BEGIN', 'COMMIT', 'ROLLBACK;'].map((text) => [text, how, send] as const),
      ),
    )('refuses %s, as %s', async (text, _, send) => {
      const { id, key } = await shop.product(10);
      const ended = withLock(key, async (client) => {
        await set(client, id, 1);
        await send(client, text);
      });
      await expect(ended).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION', key });
      expect(await left(id)).toBe(10);
    });

    test('sends one statement in each query, also in one of pg', async () => {
      const { id, key } = await shop.product(10);
      const several = `UPDATE "Stock" SET quantity = 1 WHERE id = ${id}; COMMIT; BEGIN`;
      const forms = [several, { text: several }, new pg.Query(several)];
      for (const form of forms) {
        const sold = withLock(key, async (client) => {
          const answer = client.query(form as pg.Query);
          if (form instanceof pg.Query) await new Promise((_, reject) => answer.on('error', reject));
          await answer;
        });
        await expect(sold).rejects.toMatchObject({ code: '42601' });
      }
      expect(await left(id)).toBe(10);
    });

    test('refuses a statement behind the end', async () => {
      const { key } = await shop.product(1);
      const client = await withLock(key, async (client) => {
        await client.query('SELECT 1');
        return { client };
      });
      await expect(client.client.query('SELECT 1')).rejects.toMatchObject({ code: 'CLOSED', key });
    });
  });

  test('20 callers share its only connection, and the pool has it in between and behind them', async () => {
    const { id, key } = await shop.product(20);
    const sell = (at: number) =>
      withLock(at % 2 ? key : `${key}:${at}`, (client) =>
        client.query('UPDATE "Stock" SET quantity = quantity - 1 WHERE id = $1', [id]),
      );
    const counts = Array.from({ length: 5 }, () => only.own.query('SELECT 1'));
    await Promise.all([...Array.from({ length: 20 }, (_, at) => sell(at)), ...counts]);
    expect(await left(id)).toBe(0);
    expect([only.own.totalCount, only.own.idleCount, only.own.waitingCount]).toEqual([1, 1, 0]);
  });

  test('gives permits, by call and by handle', async () => {
    const { id, key } = await shop.product(10);
    const permit = await only.locks.permit(key, { permits: 1 });
    await permit.$transaction((client) => set(client, id, 9));
    expect(await only.locks.tryWithPermit(key, { permits: 1 }, () => 'in')).toEqual({ acquired: false });
    const work = async (client: LockClient, lock: { readonly permit: number }) => {
      await set(client, id, 8);
      return lock.permit;
    };
    expect(await only.locks.withPermit(key, { permits: 2 }, work)).toBe(1);
    expect(await left(id)).toBe(8);
    await permit.release();
  });

  test('who gets no connection of the pool within maxWait hears of it, and gets none later', async () => {
    const { key } = await shop.product(1);
    const small = locksOf({ max: 1 });
    const other = await small.own.connect();
    const held = small.locks.withLock(key, () => 'in', { maxWait: 100 });
    await expect(held).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      key,
      server: 'Postgres',
      message: expect.stringMatching(/within 100 ms.*no connection \(`maxWait`\)/),
    });
    expect(await locksOf().locks.tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
    other.release();
    expect(await small.locks.withLock(key, () => 'in')).toBe('in');
  });

  test('`close` waits for the work, turns away who comes later, and leaves the pool to its owner', async () => {
    const { id, key } = await shop.product(10);
    const own = locksOf({ max: 1 });
    const [begun, goOn] = [gate(), gate()];
    const held = own.locks.withLock(key, async (client) => {
      begun.open();
      await goOn.opened;
      await set(client, id, 9);
    });
    await begun.opened;
    const closed = own.locks.close();
    await expect(own.locks.withLock(key, () => 'in')).rejects.toMatchObject({ code: 'CLOSED' });
    goOn.open();
    await Promise.all([held, closed]);
    const { rows } = await own.own.query('SELECT quantity FROM "Stock" WHERE id = $1', [id]);
    expect(rows).toEqual([{ quantity: 9 }]);
  });

  describe('refuses', () => {
    const redis = () => shop.redis();
    const OPTIONS: Record<string, readonly [option: string, make: () => unknown]> = {
      'no options': ['pool', () => fencedLocks(undefined as never)],
      'no pool': ['pool', () => fencedLocks({ redis: redis() } as never)],
      'a client': ['pool', () => fencedLocks({ pool: new pg.Client() as never, redis: redis() })],
      'a pool with query_timeout': ['query_timeout', () => locksOf({ query_timeout: 1_000 })],
      'a URL with query_timeout': [
        'query_timeout',
        () => locksOf({ connectionString: `${inject('postgres').app}?query_timeout=1000` }),
      ],
      'a rescue pool with query_timeout': [
        'query_timeout',
        () => locksOf({}, { rescue: shop.pool({ query_timeout: 1_000 }) }),
      ],
      'models, which are of Prisma': ['models', () => locksOf({}, { models: [] } as never)],
      'no options of Kysely': ['db', () => kyselyLocks(undefined as never)],
      'no Kysely': ['db', () => kyselyLocks({ pool: shop.pool(), redis: redis() } as never)],
      'no Drizzle': ['db', () => drizzleLocks({ redis: redis() } as never)],
      'a Drizzle over a client': ['db', () => drizzleLocks({ db: drizzle(new pg.Client()), redis: redis() })],
    };
    test.each(Object.entries(OPTIONS))('%s', (_, [option, make]) => {
      expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
    });

    test.each([
      ['that no lock has', false],
      ['of other locks', true],
    ])('a Kysely over another pool, %s', async (_, fenced) => {
      const { id, key } = await shop.product(10);
      const other = fenced ? locksOf().own : shop.pool();
      type Stock = { readonly Stock: { readonly id: number; readonly quantity: number } };
      const db = new Kysely<Stock>({ dialect: new PostgresDialect({ pool: other }) });
      const locks = kyselyLocks({ db, pool: shop.pool(), redis: redis() });
      shop.closeLater(() => locks.close());
      const sold = locks.withLock(key, (trx) => trx.updateTable('Stock').set({ quantity: 1 }).execute());
      await expect(sold).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'pool' });
      expect(await left(id)).toBe(10);
      expect(await other.query('SELECT 1')).toMatchObject({ rowCount: 1 });
    });

    test('what is no function', async () => {
      await expect(withLock('stock', 'work' as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    });
  });

  describe.each(Object.entries<Face>(FACES))('%s', (_, face) => {
    const LEVELS = {
      ReadCommitted: 'read committed',
      RepeatableRead: 'repeatable read',
      Serializable: 'serializable',
    } as const;

    test('begins its transaction at the isolation level of the lock', async () => {
      const { locks, raw } = face(shop);
      for (const [isolationLevel, level] of Object.entries(LEVELS)) {
        const differs = `DO $$ BEGIN IF current_setting('transaction_isolation') <> '${level}' THEN RAISE 'other'; END IF; END $$`;
        const { key } = await shop.product(1);
        await locks.withLock(key, (tx) => raw(tx, differs), { isolationLevel: isolationLevel as keyof typeof LEVELS });
        const plain = locks.withLock(key, (tx) => raw(tx, differs));
        if (level === 'read committed') await plain;
        else await expect(plain).rejects.toThrow();
      }
    });
  });
});
