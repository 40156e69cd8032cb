import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { withDatabase } from '../test/support/servers/index.js';
import { startWorker } from '../test/support/worker.js';
import { createClient, type ExampleClient } from './client.js';
import { setUpExamples } from './database.js';

/** What the tests of the examples stand on: a database of their own on the shared server, and clients of it. */
export class ExampleWorld {
  readonly #closing: Array<() => Promise<void>> = [];
  #databaseUrl = '';

  constructor() {
    const name = `examples_${randomUUID().replaceAll('-', '')}`;
    const { admin, app } = inject('postgres');
    beforeAll(async () => {
      await this.#asAdmin(`CREATE DATABASE ${name}`);
      await setUpExamples(withDatabase(admin, name));
      this.#databaseUrl = withDatabase(app, name);
    });
    afterAll(async () => {
      for (const close of this.#closing.splice(0).reverse()) await close();
      await this.#asAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    });
  }

  get env(): { DATABASE_URL: string; REDIS_URL: string } {
    return { DATABASE_URL: this.#databaseUrl, REDIS_URL: inject('redis').url as string };
  }

  /** Each is an actor of its own, as if it were another process. */
  client(): ExampleClient {
    const { prisma, close } = createClient(this.env.DATABASE_URL, this.env.REDIS_URL);
    this.#closing.push(close);
    return prisma;
  }

  /** Closed after the suite, before the clients. */
  closeLater(close: () => Promise<void>): void {
    this.#closing.push(close);
  }

  /** Runs the program of an example, which must exit with 0. Resolves to what it wrote. */
  async output(main: URL, ...args: string[]): Promise<string> {
    const child = startWorker(main, args, this.env);
    const { code } = await child.exited;
    expect(code, child.output).toBe(0);
    return child.output;
  }

  async #asAdmin(sql: string): Promise<void> {
    const client = new pg.Client({ connectionString: inject('postgres').admin });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  }
}
