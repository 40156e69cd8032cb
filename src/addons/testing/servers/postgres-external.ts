import { randomUUID } from 'node:crypto';
import { NotSupervised, ServerUnavailable, unsupervised } from './errors.js';
import { queryOnce } from './postgres-query.js';
import { type PostgresServer, withDatabase, withUser } from './postgres-server.js';

/**
 * A server that is not ours: only databases in it are, under random names. They are dropped by `stop()`; a process that
 * is killed leaves them behind, since nobody is left who may connect.
 */
export async function useExternal(
  kind: 'DATABASE_URL' | 'testcontainers',
  adminUrl: string,
  afterwards: () => Promise<void> = async () => {},
): Promise<PostgresServer> {
  const created: string[] = [];
  const createDatabase = async () => {
    const name = `fenced_lock_test_${randomUUID().replaceAll('-', '')}`;
    await queryOnce(adminUrl, `CREATE DATABASE ${name}`);
    created.push(name);
    return withDatabase(adminUrl, name);
  };
  const url = await createDatabase().catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    const right = (cause as { code?: unknown } | null)?.code === '42501' ? ' Its role needs CREATEDB.' : '';
    const what = `No Postgres: a database could not be created on the server of ${kind}: ${why}.${right}`;
    const instead =
      kind === 'DATABASE_URL' ? ' Or unset DATABASE_URL, so that the tests start a server of their own.' : '';
    throw new ServerUnavailable(what + instead, { cause });
  });
  const row = await queryOnce<{ server_version: string }>(url, 'SHOW server_version');

  return {
    kind,
    ...unsupervised(kind),
    version: row?.server_version ?? 'unknown',
    host: new URL(url).hostname,
    port: Number(new URL(url).port || 5432),
    url,
    // Not 0 and not -1: a signal to either reaches far more than one process.
    get pid(): number {
      throw new NotSupervised('pid', kind);
    },
    urlFor: (user, password) => withUser(url, user, password),
    createDatabase,
    stop: async () => {
      for (const name of created.splice(0)) await queryOnce(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await afterwards();
    },
  };
}
