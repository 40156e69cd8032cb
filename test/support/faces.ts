import { PrismaPg } from '@prisma/adapter-pg';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import * as columns from 'drizzle-orm/pg-core';
import { defineRelations, sql as sql1 } from 'drizzle-orm-1';
import { drizzle as drizzle1 } from 'drizzle-orm-1/node-postgres';
import * as columns1 from 'drizzle-orm-1/pg-core';
import { CamelCasePlugin, Kysely, sql as kyselySql, PostgresDialect } from 'kysely';
import pg from 'pg';
import { beforeAll, inject } from 'vitest';
import { fencedLocks as drizzleLocks } from '../../src/faces/drizzle.js';
import { fencedLocks as kyselyLocks } from '../../src/faces/kysely.js';
import { type FencedLocks, fencedLocks, type LockClient } from '../../src/faces/pg.js';
import type { FencedLockEvent, FencedLockOptions, LockTx } from '../../src/index.js';
import { guardSql } from './fence-world.js';
import { withDatabase } from './servers/index.js';
import { Shop, type ShopClient } from './shop.js';
import { setUpShop } from './shop-database.js';

/** What the function of a face's lock gets. */
type Tx = unknown;

/** One who takes locks through a face, with connections and a queue of its own, and works in their transactions. */
export interface Actor {
  readonly locks: Omit<FencedLocks<Tx>, 'close'>;
  readonly events: readonly FencedLockEvent[];
  read(tx: Tx, id: number): Promise<number>;
  write(tx: Tx, id: number, quantity: number): Promise<unknown>;
  raw(tx: Tx, text: string): Promise<unknown>;
  /** Past the locks, on a connection of the same pool. */
  beside(text: string): Promise<unknown>;
}

interface ActorOptions extends Partial<Omit<FencedLockOptions, 'rescue'>> {
  /** Settings of its pool. */
  readonly pool?: pg.PoolConfig;
  /** The url of the rescue connection. */
  readonly rescue?: string;
}

type Work<T> = {
  readonly [Name in 'read' | 'write' | 'raw']: (
    tx: T,
    ...given: Parameters<Actor[Name]> extends [Tx, ...infer Given] ? Given : never
  ) => ReturnType<Actor[Name]>;
};

/** An actor over a pool of pg. */
function over<T>(
  shop: Shop,
  { pool: settings, rescue, ...given }: ActorOptions,
  open: (pool: pg.Pool, options: Partial<Omit<FencedLockOptions, 'rescue'>>) => FencedLocks<T>,
  work: Work<T>,
): Actor {
  const events: FencedLockEvent[] = [];
  const pool = shop.pool(settings);
  const other = rescue === undefined ? {} : { rescue: shop.pool({ connectionString: rescue }) };
  const locks = open(pool, { onEvent: (event) => events.push(event), redis: shop.redis(), ...given, ...other });
  shop.closeLater(() => locks.close());
  return { ...(work as Work<Tx>), locks: locks as FencedLocks<Tx>, events, beside: (text) => pool.query(text) };
}

const required = <T>(found: T | undefined): T => {
  if (found === undefined) throw new Error('no such row');
  return found;
};

function onPrisma(shop: Shop, { rescue, ...given }: ActorOptions = {}): Actor {
  const own = rescue === undefined ? {} : { rescue: new PrismaPg({ connectionString: rescue }) };
  const { prisma, plain, events } = shop.client({ ...given, ...own });
  const locks = {
    withLock: prisma.$withLock.bind(prisma),
    tryWithLock: prisma.$tryWithLock.bind(prisma),
    oncePer: prisma.$oncePer.bind(prisma),
    lock: prisma.$lock.bind(prisma),
    resumeLock: prisma.$resumeLock.bind(prisma),
    locks: prisma.$locks,
  };
  const work: Work<LockTx<ShopClient>> = {
    read: async (tx, id) => (await tx.stock.findUniqueOrThrow({ where: { id } })).quantity,
    write: async (tx, id, quantity) => await tx.stock.update({ where: { id }, data: { quantity } }),
    raw: async (tx, text) => await tx.$executeRawUnsafe(text),
  };
  const beside = async (text: string) => await plain.$executeRawUnsafe(text);
  return { ...(work as Work<Tx>), locks: locks as unknown as Actor['locks'], events, beside };
}

const onPg = (shop: Shop, given: ActorOptions = {}): Actor =>
  over<LockClient>(shop, given, (pool, options) => fencedLocks({ ...options, pool } as never), {
    async read(client, id) {
      const { rows } = await client.query<{ quantity: number }>('SELECT quantity FROM "Stock" WHERE id = $1', [id]);
      return required(rows[0]).quantity;
    },
    write: (client, id, quantity) => client.query('UPDATE "Stock" SET quantity = $2 WHERE id = $1', [id, quantity]),
    raw: (client, text) => client.query(text),
  });

/** The row by other names: `withSchema` and a plugin have to reach it. */
const DEPOT = `
  CREATE SCHEMA depot;
  CREATE VIEW depot.stock_row AS SELECT id, quantity AS stock_quantity FROM "Stock";
  GRANT USAGE ON SCHEMA depot TO PUBLIC;
  GRANT SELECT, UPDATE ON depot.stock_row TO PUBLIC;`;

interface Depot {
  readonly stockRow: { readonly id: number; readonly stockQuantity: number };
}

const onKysely = (shop: Shop, given: ActorOptions = {}): Actor =>
  over(
    shop,
    given,
    (pool, options) => {
      const plugins = [new CamelCasePlugin()];
      const db = new Kysely<Depot>({ dialect: new PostgresDialect({ pool }), plugins }).withSchema('depot');
      return kyselyLocks({ ...options, db, pool } as Parameters<typeof kyselyLocks<Depot>>[0]);
    },
    {
      async read(trx, id) {
        const found = trx.selectFrom('stockRow').select('stockQuantity').where('id', '=', id);
        return (await found.executeTakeFirstOrThrow()).stockQuantity;
      },
      write: (trx, id, quantity) =>
        trx.updateTable('stockRow').set({ stockQuantity: quantity }).where('id', '=', id).execute(),
      raw: (trx, text) => kyselySql.raw(text).execute(trx),
    },
  );

const schema = {
  stock: columns.pgTable('Stock', { id: columns.integer().primaryKey(), quantity: columns.integer().notNull() }),
};

const onDrizzle = (shop: Shop, given: ActorOptions = {}): Actor =>
  over(
    shop,
    given,
    (pool, options) => {
      const db = drizzle(pool, { schema });
      return drizzleLocks({ ...options, db } as { db: typeof db; redis: never });
    },
    {
      async read(tx, id) {
        return required(await tx.query.stock.findFirst({ where: eq(schema.stock.id, id) })).quantity;
      },
      write: async (tx, id, quantity) => await tx.update(schema.stock).set({ quantity }).where(eq(schema.stock.id, id)),
      raw: (tx, text) => tx.execute(sql.raw(text)),
    },
  );

const relations = defineRelations({
  stock: columns1.pgTable('Stock', { id: columns1.integer().primaryKey(), quantity: columns1.integer().notNull() }),
});

const onDrizzle1 = (shop: Shop, given: ActorOptions = {}): Actor =>
  over(
    shop,
    given,
    (pool, options) => {
      const db = drizzle1({ client: pool, relations });
      return drizzleLocks({ ...options, db } as { db: typeof db; redis: never });
    },
    {
      read: async (tx, id) => required(await tx.query.stock.findFirst({ where: { id } })).quantity,
      write: async (tx, id, quantity) =>
        await tx.execute(sql1`UPDATE "Stock" SET quantity = ${quantity} WHERE id = ${id}`),
      raw: async (tx, text) => await tx.execute(sql1.raw(text)),
    },
  );

/** What gives the locks. */
export const FACES = {
  'Prisma 7': onPrisma,
  pg: onPg,
  Kysely: onKysely,
  'Drizzle 0.45': onDrizzle,
  'Drizzle 1': onDrizzle1,
} as const satisfies Record<string, (shop: Shop, given?: ActorOptions) => Actor>;

export type Face = (shop: Shop, given?: ActorOptions) => Actor;

/** Work that reads before it writes, and so loses updates without a lock: one is sold. Resolves to how many are left. */
export function sells({ read, write }: Actor, id: number, afterRead?: () => unknown) {
  return async (tx: Tx): Promise<number> => {
    const quantity = await read(tx, id);
    await afterRead?.();
    await write(tx, id, quantity - 1);
    return quantity - 1;
  };
}

/** A shop for all faces, in a database of its own, whose guard judges the writes. */
export function guardedShop(name: string): Shop {
  const { app, admin } = inject('postgres');
  const url = withDatabase(admin, name);
  const shop = new Shop(() => ({
    postgres: withDatabase(app, name),
    admin: url,
    redis: inject('redis').url as string,
  }));
  beforeAll(async () => {
    const server = new pg.Client({ connectionString: admin });
    await server.connect();
    await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await server.query(`CREATE DATABASE ${name}`);
    await server.end();
    await setUpShop({ url });
    await shop.admin.query(guardSql('"Stock"', 'fence', 'allow') + DEPOT);
  });
  return shop;
}
