import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { createDatabase, type OwnDatabase } from '../cli/database.js';
import { readMigrations, readSchema, schemaEngine } from '../cli/schema-engine.js';

const LOCK = 'provider = "postgresql"\n';

/**
 * A project of somebody who tries the package: a folder outside of this repository, and a database of its own. npm, Prisma's
 * command and ours run there as installed. What of Prisma's command needs its schema engine, which it would download, is
 * done by the same engine as WebAssembly.
 */
export class Trial {
  readonly folder = mkdtempSync(join(tmpdir(), 'fenced-lock-trial-'));
  /** Our commands, as they were run. */
  readonly commands: string[] = [];
  readonly database: OwnDatabase;
  /** Where the schema and its migrations are. */
  home = 'prisma';
  #written = 0;

  private constructor(database: OwnDatabase) {
    this.database = database;
  }

  static async begin(): Promise<Trial> {
    return new Trial(await createDatabase());
  }

  async end(): Promise<void> {
    rmSync(this.folder, { recursive: true, force: true });
    await this.database[Symbol.asyncDispose]();
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  read(path: string): string {
    return readFileSync(this.path(path), 'utf8');
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true });
    writeFileSync(this.path(path), text);
  }

  /** A line in a shell, with what is installed here on the PATH. Returns stdout and stderr; rejects where it fails. */
  async sh(line: string): Promise<{ out: string; err: string }> {
    const env = {
      HOME: process.env['HOME'],
      PATH: `${this.path('node_modules/.bin')}:${process.env['PATH']}`,
      DATABASE_URL: this.database.url,
      REDIS_URL: inject('redis').url,
      // Prisma downloads an engine for its every command, which those that are run here do not need.
      PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
      TSX_DISABLE_CACHE: '1',
    };
    const run = promisify(execFile);
    try {
      const { stdout, stderr } = await run('/bin/sh', ['-ec', line], { cwd: this.folder, env, maxBuffer: 2 ** 26 });
      return { out: stdout, err: stderr };
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${line} failed:\n${stdout}${stderr}`);
    }
  }

  async fencedLock(args: string): Promise<{ out: string; err: string }> {
    this.commands.push(args);
    return await this.sh(`fenced-lock ${args}`);
  }

  /** What doctor complains of. */
  async complaints(): Promise<unknown[]> {
    const { out } = await this.fencedLock('doctor --json');
    const { findings } = JSON.parse(out) as { findings: ReadonlyArray<{ status: string }> };
    return findings.filter(({ status }) => status !== 'ok' && status !== 'skipped');
  }

  /** `prisma migrate dev`: writes a migration for what differs, if anything does, and applies what is new. */
  async migrateDev(name: string): Promise<string[]> {
    return await this.#engine(async (engine) => {
      if (!existsSync(this.path(this.home, 'migrations/migration_lock.toml'))) {
        this.write(`${this.home}/migrations/migration_lock.toml`, LOCK);
      }
      const { action } = await engine.dev(this.#migrations());
      if (action.tag !== 'createMigration')
        throw new Error(`prisma migrate dev would ask for: ${JSON.stringify(action)}`);
      const script = await engine.next(this.#migrations());
      if (!/^(-- This is an empty migration\.)?$/.test(script)) {
        this.#written++;
        const stamp = new Date(Date.now() + this.#written * 1_000).toISOString().replaceAll(/\D/g, '').slice(0, 14);
        this.write(`${this.home}/migrations/${stamp}_${name}/migration.sql`, script);
      }
      return await engine.deploy(this.#migrations());
    });
  }

  /** `prisma migrate deploy`. */
  migrateDeploy(): Promise<string[]> {
    return this.#engine((engine) => engine.deploy(this.#migrations()));
  }

  #migrations() {
    return readMigrations(this.path(this.home, 'migrations'));
  }

  async #engine<T>(work: (engine: Awaited<ReturnType<typeof schemaEngine>>) => Promise<T>): Promise<T> {
    const engine = await schemaEngine(this.database.url, readSchema(this.path(this.home)));
    try {
      return await work(engine);
    } finally {
      await engine.close();
    }
  }
}
