import pg from 'pg';
import { afterAll, beforeAll, inject } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';

/** Who acts: the owner of tables and objects, the application, one that may only read, a tenant with a schema of its own. */
const ROLES = ['sec_owner', 'sec_app', 'sec_readonly', 'sec_tenant'] as const;
export type Role = (typeof ROLES)[number];

/** A database of its own, whose objects and tables belong to `sec_owner`, and sessions of each role in it. */
export class Stage {
  readonly #name: string;
  readonly #sessions: pg.Client[] = [];
  #admin: pg.Client | undefined;

  constructor(name: string, setUp: (stage: Stage) => Promise<unknown>) {
    this.#name = name;
    beforeAll(async () => {
      const server = new pg.Client({ connectionString: inject('postgres').admin });
      await server.connect();
      for (const role of ROLES) {
        await server.query(`DO $$ BEGIN CREATE ROLE ${role} LOGIN PASSWORD '${role}' NOSUPERUSER;
          EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$`);
      }
      await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await server.query(`CREATE DATABASE ${name} OWNER sec_owner`);
      await server.end();
      this.#admin = await this.#connect(this.#url());
      await setUp(this);
    }, 60_000);
    afterAll(() => Promise.all(this.#sessions.map((session) => session.end().catch(() => {}))));
  }

  /** As a superuser. */
  get admin(): pg.Client {
    if (this.#admin === undefined) throw new Error('not set up yet');
    return this.#admin;
  }

  session(role: Role): Promise<pg.Client> {
    return this.#connect(this.#url(role));
  }

  /** Applies our migrations, as the owner. */
  async install(): Promise<void> {
    await applyMigrations(this.#url('sec_owner'));
  }

  #url(role?: Role): string {
    const url = new URL(inject('postgres').admin);
    if (role !== undefined) Object.assign(url, { username: role, password: role });
    return Object.assign(url, { pathname: `/${this.#name}` }).href;
  }

  async #connect(connectionString: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString });
    client.on('error', () => {});
    await client.connect();
    this.#sessions.push(client);
    return client;
  }
}

/** Runs statements in one transaction, and answers with `ok` or the SQLSTATE of the first that failed. */
export async function outcome(session: pg.Client, ...statements: readonly string[]): Promise<string> {
  await session.query('BEGIN');
  try {
    for (const statement of statements) await session.query(statement);
    await session.query('COMMIT');
    return 'ok';
  } catch (error) {
    await session.query('ROLLBACK');
    return (error as { code?: string }).code ?? String(error);
  }
}
