import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { drizzleLocks, kyselyLocks, pgLocks } from '../shipped.js';
import type { Contestant, Sale, Surroundings } from './contestant.js';
import { type Mutex, openMutex } from './simple-redis-mutex.js';
import { isUnknown } from './with-lock.js';

const Stock = pgTable('Stock', { id: integer().primaryKey(), quantity: integer().notNull() });
interface Tables {
  readonly Stock: { readonly id: number; readonly quantity: number };
}

/** A database library: its own transaction, and a lock around the same work. */
interface Face {
  readonly pool: pg.Pool;
  bare(sale: Sale): Promise<void>;
  locked(sale: Sale): Promise<void>;
}

type Open = (pool: pg.Pool, house: Surroundings) => Face;

const plainPg: Open = (pool, { redis }) => {
  const locks = pgLocks({ pool, redis });
  const work = async (client: Pick<pg.ClientBase, 'query'>, { id }: Sale) => {
    const { rows } = await client.query('SELECT id, quantity FROM "Stock" WHERE id = $1', [id]);
    await client.query('UPDATE "Stock" SET quantity = $1 WHERE id = $2', [rows[0].quantity - 1, id]);
  };
  return {
    pool,
    async bare(sale) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await work(client, sale);
        await client.query('COMMIT');
      } finally {
        client.release();
      }
    },
    locked: (sale) => locks.withLock(sale.key, (client) => work(client, sale)),
  };
};

const kysely: Open = (pool, { redis }) => {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const locks = kyselyLocks({ db, pool, redis });
  const work = async (trx: Kysely<Tables>, { id }: Sale) => {
    const { quantity } = await trx.selectFrom('Stock').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    await trx
      .updateTable('Stock')
      .set({ quantity: quantity - 1 })
      .where('id', '=', id)
      .execute();
  };
  return {
    pool,
    bare: (sale) => db.transaction().execute((trx) => work(trx, sale)),
    locked: (sale) => locks.withLock(sale.key, (trx) => work(trx, sale)),
  };
};

const drizzled: Open = (pool, { redis }) => {
  const db = drizzle(pool);
  const locks = drizzleLocks({ db, redis });
  const work = async (tx: Pick<typeof db, 'select' | 'update'>, { id }: Sale) => {
    const [row] = await tx.select().from(Stock).where(eq(Stock.id, id));
    await tx
      .update(Stock)
      .set({ quantity: (row?.quantity ?? 0) - 1 })
      .where(eq(Stock.id, id));
  };
  return {
    pool,
    bare: (sale) => db.transaction((tx) => work(tx, sale)),
    locked: (sale) => locks.withLock(sale.key, (tx) => work(tx, sale)),
  };
};

/** The three contestants of one library; the first is its bare transaction. They share its pool. */
function contestantsOf(library: string, open: Open): readonly [Contestant, ...Contestant[]] {
  const opened = new WeakMap<Surroundings, { readonly face: Face; users: number }>();
  const contestant = (
    name: string,
    waits: Contestant['waits'],
    sellBy: (face: Face, mutex: Mutex | undefined) => (sale: Sale) => Promise<void>,
  ): Contestant => ({
    name: `${library}: ${name}`,
    waits,
    shop: 'plain',
    async open(house) {
      const shared = opened.get(house) ?? {
        face: open(new pg.Pool({ connectionString: house.site.plain, max: 10 }), house),
        users: 0,
      };
      opened.set(house, shared);
      shared.users++;
      const mutex = name === MUTEX ? await openMutex(house) : undefined;
      return {
        sell: sellBy(shared.face, mutex),
        isUnknown,
        async close() {
          mutex?.close();
          if (--shared.users === 0) await shared.face.pool.end();
        },
      };
    },
  });
  return [
    contestant('its own transaction', 'nowhere', ({ bare }) => bare),
    contestant('withLock', 'redis', ({ locked }) => locked),
    contestant(
      MUTEX,
      'redis',
      ({ bare }, mutex) =>
        (sale) =>
          (mutex as Mutex).around(sale, () => bare(sale)),
    ),
  ];
}

const MUTEX = 'simple-redis-mutex';

export const FACES = [
  contestantsOf('pg', plainPg),
  contestantsOf('Kysely', kysely),
  contestantsOf('Drizzle', drizzled),
] as const;
