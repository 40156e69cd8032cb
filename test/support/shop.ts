import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, describe, inject, test } from 'vitest';
import {
  type FencedLockEvent,
  type FencedLockOptions,
  fencedLock,
  type Lock,
  type LockOptions,
  type LockTx,
} from '../../src/index.js';
import { namesOf } from '../../src/redis/names.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from './eventually.js';

/** A suite on the shared servers. Where no real Redis can be had, one skipped test shows the reason. */
export function describeWithShop(name: string, suite: () => void): void {
  const { url, reason } = inject('redis');
  describe(name, () => {
    if (url === undefined) test.skip(reason, () => {});
    else suite();
  });
}

export interface Urls {
  readonly postgres: string;
  readonly redis: string;
  /** For what the application's role may not do. */
  readonly admin: string;
}

export type ShopOptions = Partial<FencedLockOptions> & {
  /** In the place of one of its own. */
  readonly adapter?: PrismaPg;
  /** Settings of the pg pool, such as `max`. */
  readonly pool?: pg.PoolConfig;
  /** Of Prisma's client. */
  readonly transactionOptions?: Exclude<ConstructorParameters<typeof PrismaClient>[0]['transactionOptions'], undefined>;
};

/** The extended client, as an application has it. */
export type ShopClient = ReturnType<Shop['client']>['prisma'];

/** However long a turn lasts in a test, the next one of its process follows. */
export const STAYS = { passOnAfter: 60_000 };

/**
 * What the actors of a test work with. Every client is an actor of its own: its own connections, its own queue, as
 * if it were another process. All are closed after the suite.
 */
export class Shop {
  readonly #urls: () => Urls;
  readonly #closing: Array<() => Promise<unknown> | unknown> = [];
  #admin: pg.Pool | undefined;
  /** What its sessions are called; those of other files that run beside it have other names. */
  readonly #names = [process.env['PGAPPNAME'] ?? ''];

  constructor(urls: () => Urls = sharedUrls) {
    this.#urls = urls;
    afterAll(() => this.close());
  }

  /** A locking client for one actor, and the events that it saw. */
  client({
    pool,
    adapter = new PrismaPg({ connectionString: this.#urls().postgres, ...pool }),
    transactionOptions,
    ...options
  }: ShopOptions = {}) {
    const events: FencedLockEvent[] = [];
    const redis = options.redis ?? this.redis();
    if (pool?.application_name !== undefined) this.#names.push(pool.application_name);
    const plain = new PrismaClient({ adapter, ...(transactionOptions && { transactionOptions }) });
    this.#closing.push(() => plain.$disconnect());
    const prisma = plain.$extends(fencedLock({ onEvent: (event) => events.push(event), ...options, redis }));
    return { prisma, plain, events };
  }

  /** A client that is not extended yet. */
  unextended(adapter: PrismaPg): PrismaClient {
    const plain = new PrismaClient({ adapter });
    this.#closing.push(() => plain.$disconnect());
    return plain;
  }

  /** The extension, on a client that there is. */
  extend(client: unknown, options: Partial<FencedLockOptions> = {}): ShopClient {
    const redis = options.redis ?? this.redis();
    return (client as PrismaClient).$extends(fencedLock({ ...options, redis })) as ShopClient;
  }

  /** A locking client whose rows go out as JSON. */
  omitting() {
    const adapter = new PrismaPg({ connectionString: this.#urls().postgres });
    const plain = new PrismaClient({ adapter, omit: { stock: { fence: true } } });
    this.#closing.push(() => plain.$disconnect());
    return plain.$extends(fencedLock({ redis: this.redis() }));
  }

  redis(): Redis {
    const redis = new Redis(this.#urls().redis);
    // Servers are killed on purpose; the commands that fail by it say so themselves.
    redis.on('error', () => {});
    this.#closing.push(() => redis.disconnect());
    return redis;
  }

  /** A pool of the application's role, for an adapter. */
  pool(config: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.#urls().postgres, ...config });
    pool.on('error', () => {});
    this.#closing.push(() => pool.end());
    return pool;
  }

  /** As a superuser, past every lock. */
  get admin(): pg.Pool {
    if (this.#admin === undefined) {
      const admin = new pg.Pool({ connectionString: this.#urls().admin });
      admin.on('error', () => {});
      this.#closing.push(() => admin.end());
      this.#admin = admin;
    }
    return this.#admin;
  }

  /** A new product: its row, and a key that no other test has. */
  async product(quantity: number): Promise<{ id: number; key: string }> {
    const name = randomUUID();
    const { rows } = await this.admin.query<{ id: number }>(
      'INSERT INTO "Stock" (product, quantity) VALUES ($1, $2) RETURNING id',
      [name, quantity],
    );
    const id = rows[0]?.id as number;
    return { id, key: `stock:${id}:${name}` };
  }

  async row(id: number): Promise<{ quantity: number; fence: bigint } | undefined> {
    const { rows } = await this.admin.query('SELECT quantity, fence FROM "Stock" WHERE id = $1', [id]);
    const row = rows[0] as { quantity: number; fence: string } | undefined;
    return row && { quantity: row.quantity, fence: BigInt(row.fence) };
  }

  /** Resolves when so many processes have their place in the queue of a key. */
  async queued(key: string, places = 1): Promise<void> {
    const [redis, { queue }] = [this.redis(), namesOf('fenced-lock:', key)];
    await eventually(`${places} wait`, async () => (await redis.llen(queue)) === places, { every: 1 });
  }

  /** Resolves when a session of this file waits for a lock that somebody else has; `query` is part of its statement. */
  blocked(query: string): Promise<number> {
    return eventually(`a session waits in ${query}`, async () => {
      const [first] = await this.#sessions(query, "wait_event_type = 'Lock'");
      return first?.pid;
    });
  }

  /**
   * Resolves when the sessions of this file have waited in at least so many transactions for a lock that somebody else has;
   * `query` is part of their statements.
   */
  async blockedAgain(query: string, times: number): Promise<void> {
    const begun = new Set<string>();
    await eventually(`${times} transactions have waited in ${query}`, async () => {
      for (const { began } of await this.#sessions(query, "wait_event_type = 'Lock'")) begun.add(began);
      return begun.size >= times;
    });
  }

  /** Resolves when a session of this file has the answer to a statement that was sent after this call; `query` is part of it. */
  async answered(query: string): Promise<void> {
    const { rows } = await this.admin.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
    const since = (rows[0] as { now: string }).now;
    await eventually(`${query} is answered`, async () => {
      const found = await this.#sessions(query, "state = 'idle' AND query_start > $3::timestamptz", since);
      return found.length > 0;
    });
  }

  async #sessions(query: string, condition: string, ...values: string[]): Promise<{ pid: number; began: string }[]> {
    const { rows } = await this.admin.query<{ pid: number; began: string }>(
      `SELECT pid, xact_start::text AS began FROM pg_stat_activity WHERE position($1 in query) > 0
       AND datname = current_database() AND application_name = ANY($2) AND ${condition}`,
      [query, this.#names, ...values],
    );
    return rows;
  }

  /** Closes it after the suite, before the clients that were made earlier. */
  closeLater(close: () => Promise<unknown> | unknown): void {
    this.#closing.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0).reverse()) await close();
  }
}

function sharedUrls(): Urls {
  const { app, admin } = inject('postgres');
  const { url } = inject('redis');
  if (url === undefined) throw new Error(inject('redis').reason);
  return { postgres: app, admin, redis: url };
}

/** A promise with its handles outside, so that a test says when something happens. */
export function gate<T = void>(): { opened: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => {};
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Work that reads before it writes, and so loses updates without a lock: one is sold. Resolves to how many are left. */
export function sale(id: number, afterRead?: () => unknown) {
  return async (tx: Pick<ShopClient, 'stock'>): Promise<number> => {
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
    await afterRead?.();
    await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
    return quantity - 1;
  };
}

/** A turn that has begun. Its work is done when it is told to go on. */
export async function atWork<R = void>(
  prisma: ShopClient,
  key: string | readonly string[],
  work?: (tx: LockTx<ShopClient>, lock: Lock) => R | Promise<R>,
  options?: LockOptions,
) {
  const [inside, end] = [gate(), gate()];
  const held = prisma.$withLock(
    key,
    async (tx, lock) => {
      inside.open();
      await end.opened;
      return (await work?.(tx, lock)) as R;
    },
    options,
  );
  // A test may look at it later.
  held.catch(() => {});
  await Promise.race([inside.opened, held]);
  return { held, goOn: end.open };
}
