import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { queryOnce, withDatabase } from '../../../src/addons/testing/servers/pg.js';
import { onPath, UNPRIVILEGED } from '../../../src/addons/testing/servers/programs.js';
import { ServerUnavailable } from '../../../src/addons/testing/servers/server.js';
import { HOST, Supervised } from '../../../src/addons/testing/servers/supervised.js';

/** PgBouncer in transaction mode, before a PostgreSQL. */
export interface PgBouncer {
  /** The same database and role, led through it. */
  url(direct: string): string;
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** Why `startPgBouncer` would throw, in a sentence; undefined if it would not. */
export function pgBouncerUnavailable(): string | undefined {
  return onPath('pgbouncer') === undefined ? UNAVAILABLE : undefined;
}

/** Whether it can follow statements that clients have prepared from server to server: 1.21 and later. */
export function pgBouncerFollowsPrepared(): boolean {
  const command = onPath('pgbouncer');
  const said = command === undefined ? '' : spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout;
  const [, major = 0, minor = 0] = /PgBouncer (\d+)\.(\d+)/.exec(said) ?? [];
  return Number(major) > 1 || Number(minor) >= 21;
}

const UNAVAILABLE = 'pgbouncer is not on PATH (apt-get install pgbouncer).';

/** Before the server of these urls, whose roles are those that it lets in. */
export async function startPgBouncer(
  urls: readonly [string, ...string[]],
  settings: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  const command = onPath('pgbouncer');
  if (command === undefined) throw new ServerUnavailable(UNAVAILABLE);
  const server = new URL(urls[0]);
  const where = `host=${server.hostname} port=${server.port || '5432'}`;
  const mark = `ours_${randomUUID().replaceAll('-', '')}`;

  const bouncer = await Supervised.start({
    kind: 'pgbouncer',
    command,
    args: (port, dir) => {
      const [users, config] = [join(dir, 'users.txt'), join(dir, 'pgbouncer.ini')];
      const all = {
        listen_addr: HOST,
        listen_port: String(port),
        unix_socket_dir: '',
        auth_type: 'trust',
        auth_file: users,
        pool_mode: 'transaction',
        ...settings,
      };
      const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
      const databases = [`${mark} = ${where} dbname=${server.pathname.slice(1)}`, `* = ${where}`];
      writeFileSync(users, urls.map(credentials).join('\n'));
      writeFileSync(config, ['[databases]', ...databases, '[pgbouncer]', ...lines, ''].join('\n'));
      return [config];
    },
    url: (port) => through(port, urls[0]),
    async ready({ url }) {
      await queryOnce(withDatabase(url, mark), 'SELECT 1');
      return 'unknown';
    },
    endSignal: 'SIGTERM',
    // It refuses to run as root, as Postgres does.
    user: UNPRIVILEGED,
  });

  return {
    url: (direct) => through(bouncer.port, direct),
    freeze: () => bouncer.freeze(),
    thaw: () => bouncer.thaw(),
    stop: () => bouncer.stop(),
  };
}

function through(port: number, direct: string): string {
  const changed = new URL(direct);
  changed.hostname = HOST;
  changed.port = String(port);
  return changed.href;
}

/** A line of its list of users: what it logs in with at the server. */
function credentials(url: string): string {
  const { username, password } = new URL(url);
  return `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"`;
}
