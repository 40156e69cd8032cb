import { readFileSync } from 'node:fs';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, inject } from 'vitest';
import { fencedLock, type LockTx } from '../../src/index.js';
import { PrismaClient } from '../generated/fence/client.js';
import { type ClientKind, ofKind } from './client-kinds.js';
import { eventually } from './eventually.js';
import { applyMigrations } from './servers/index.js';

export type Policy = 'allow' | 'require' | 'prove';
export type FenceClient = ReturnType<FenceWorld['client']>;
export type FenceTx = LockTx<FenceClient>;

/** The tables of the fenced models, and what their columns are called. */
export const TABLES = {
  Member: { name: 'people."Member"', id: 'id', value: 'value', fence: 'fence' },
  Badge: { name: 'people."Badge"', id: 'id', value: 'value', fence: 'fence' },
  Desk: { name: 'depot."office furniture"', id: 'desk_id', value: 'desk_value', fence: 'desk_fence' },
  Note: { name: 'people."Note"', id: '"memberId"', value: 'value', fence: 'fence' },
  Tag: { name: 'people."Tag"', id: 'id', value: 'value', fence: 'fence' },
  Mascot: { name: 'people."Mascot"', id: 'id', value: 'value', fence: 'fence' },
  Word: { name: 'people."Word"', id: 'id', value: 'value', fence: 'fence' },
} as const;
export type Fenced = keyof typeof TABLES;

/** Above every token. */
export const FRESHER = 9_000_000_000_000_000_000n;

/** The statements of add-fence for one table. */
export function guardSql(table: string, column: string, policy: Policy): string {
  return `
    CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON ${table}
      FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('${column}', '${policy}');
    CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON ${table}
      FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('${policy}');`;
}

/** A database of its own with the tables of test/schema/fence.prisma, and actors in it. */
export class FenceWorld {
  readonly #closing: Array<() => Promise<unknown> | unknown> = [];
  readonly #name: string;
  readonly #kind: ClientKind;
  #admin: pg.Pool | undefined;

  /**
   * The guard is put on these models, where there is a policy.
   *
   * @param kind of its clients.
   */
  constructor(
    name: string,
    policy?: Policy,
    guarded: readonly Fenced[] = Object.keys(TABLES) as Fenced[],
    kind: ClientKind = 'plain',
  ) {
    this.#name = name;
    this.#kind = kind;
    beforeAll(() => this.#setUp(policy, guarded));
    afterAll(async () => {
      for (const close of this.#closing.splice(0).reverse()) await close();
    });
  }

  /** The application's role, which neither owns the tables nor sees those of `fenced_lock`. */
  get url(): string {
    return Object.assign(new URL(inject('postgres').app), { pathname: `/${this.#name}` }).href;
  }

  /** As a superuser. */
  get admin(): pg.Pool {
    if (this.#admin === undefined) throw new Error('not set up yet');
    return this.#admin;
  }

  client() {
    const redis = new Redis(inject('redis').url ?? '');
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: this.url, max: 20 }) });
    this.#closing.push(() => Promise.all([plain.$disconnect(), redis.disconnect()]));
    return ofKind(this.#kind, plain.$extends(fencedLock({ redis })));
  }

  /** A connection of the application that no lock knows of. */
  async session(url = this.url): Promise<pg.Client> {
    const session = new pg.Client({ connectionString: url });
    await session.connect();
    this.#closing.push(() => session.end());
    return session;
  }

  /** Work of an administrator, whom no guard refuses, in one transaction. */
  async overriding<T>(work: (session: pg.PoolClient) => Promise<T>): Promise<T> {
    const session = await this.admin.connect();
    try {
      await session.query("BEGIN; SELECT fenced_lock.override('test')");
      const done = await work(session);
      await session.query('COMMIT');
      return done;
    } finally {
      // Where it failed, in the middle of the transaction.
      await session.query('ROLLBACK');
      session.release();
    }
  }

  /** Resolves when a session of this database waits for a lock. */
  blocked(): Promise<number> {
    return eventually(
      'a session waits',
      async () => {
        const { rows } = await this.admin.query<{ pid: number }>(
          "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
        );
        return rows[0]?.pid;
      },
      { every: 2 },
    );
  }

  async #setUp(policy: Policy | undefined, guarded: readonly Fenced[]): Promise<void> {
    const server = new pg.Client({ connectionString: inject('postgres').admin });
    await server.connect();
    await server.query(`DROP DATABASE IF EXISTS ${this.#name} WITH (FORCE)`);
    await server.query(`CREATE DATABASE ${this.#name}`);
    await server.end();
    const url = Object.assign(new URL(inject('postgres').admin), { pathname: `/${this.#name}` }).href;
    await applyMigrations(url);
    const admin = new pg.Pool({ connectionString: url });
    this.#admin = admin;
    this.#closing.push(() => admin.end());
    await admin.query(readFileSync(new URL('../schema/fence.sql', import.meta.url), 'utf8'));
    const role = new URL(this.url).username;
    for (const schema of ['people', 'depot']) {
      await admin.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
        GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA ${schema} TO ${role};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role}`);
    }
    if (policy === undefined) return;
    for (const { name, fence } of guarded.map((model) => TABLES[model]))
      await admin.query(guardSql(name, fence, policy));
  }
}
