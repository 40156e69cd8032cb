import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cachedDir } from './cache-dir.js';
import { guardedDir } from './guard.js';
import { asUser, type PostgresBinaries } from './postgres-binaries.js';
import { queryOnce } from './postgres-query.js';
import { type PostgresOptions, type PostgresServer, withDatabase, withUser } from './postgres-server.js';
import { run } from './run.js';
import { Supervised } from './supervised.js';
import { trueTime } from './wall-clock.js';

const HOST = '127.0.0.1';

/** Whose binaries these are, and who runs them. */
export interface Installation {
  readonly kind: 'embedded' | 'PATH';
  readonly binaries: PostgresBinaries;
  readonly user: number;
}

/** A server of our own, from binaries of this machine. */
export async function startEmbedded(
  { kind, binaries, user }: Installation,
  { settings = {}, clock: makeClock = trueTime }: PostgresOptions,
): Promise<PostgresServer> {
  const template = await preparedData(binaries, user);

  // SIGQUIT is Postgres's immediate mode.
  const dir = guardedDir('postgres', { owner: user, endSignal: 'SIGQUIT' });
  const data = join(dir.path, 'data');
  await run('cp', ['-a', template, data], { user: asUser(user), cwd: dir.path });

  const clock = await makeClock(dir.path);
  const server = await Supervised.start({
    dir,
    command: binaries.postgres,
    args: (port) => ['-D', data, ...flags({ ...defaults(port), ...settings })],
    ready: (port) => answersFrom(urlOf(port), data),
    endSignal: 'SIGQUIT',
    user: asUser(user),
    env: clock.env,
  });
  const url = urlOf(server.port);

  return {
    kind,
    supervised: true,
    version: binaries.version,
    host: HOST,
    port: server.port,
    dir: dir.path,
    url,
    get pid() {
      return server.pid;
    },
    urlFor: (name, password) => withUser(url, name, password),
    createDatabase: async () => {
      const name = `test_${randomUUID().replaceAll('-', '')}`;
      await queryOnce(url, `CREATE DATABASE ${name}`);
      return withDatabase(url, name);
    },
    killHard: () => server.killHard(),
    start: () => server.start(),
    restart: async () => {
      await server.end();
      await server.start();
    },
    freeze: () => server.freeze(),
    thaw: () => server.thaw(),
    moveClock: clock.move,
    stop: () => server.stop(),
  };
}

/** fsync stays on: the tests are about what survives a crash. The sizes are small because many run side by side. */
function defaults(port: number): Record<string, string> {
  return {
    listen_addresses: HOST,
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '64MB',
    max_wal_size: '256MB',
  };
}

/** Settings as arguments of the server. */
export function flags(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

function urlOf(port: number): string {
  return `postgresql://postgres@${HOST}:${port}/postgres`;
}

/** initdb takes a second or two, a copy of its result a tenth of one. */
function preparedData(binaries: PostgresBinaries, user: number): Promise<string> {
  return cachedDir(`pg-data-${binaries.origin}-${process.arch}`, user, async (data) => {
    const options = ['--encoding=UTF8', '--locale=C', '--username=postgres', '--auth=trust', '--no-sync'];
    await run(binaries.initdb, [...options, '-D', data], { user: asUser(user), cwd: dirname(data) });
    if (!existsSync(join(data, 'PG_VERSION'))) throw new Error(`initdb left no cluster in ${data}`);
  });
}

/** It must be our server: another process can have taken the port while ours is still starting. */
async function answersFrom(url: string, data: string): Promise<void> {
  const row = await queryOnce<{ dir: string }>(url, `SELECT current_setting('data_directory') AS dir`);
  if (row?.dir !== data) throw new Error(`another server answers: ${row?.dir}`);
}
