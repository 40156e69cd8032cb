import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onPostgres, type PgClient } from './pg.js';

/** The table as Prisma Migrate makes it. */
const HISTORY_TABLE = `
CREATE TABLE IF NOT EXISTS "_prisma_migrations" (
  "id" VARCHAR(36) PRIMARY KEY NOT NULL,
  "checksum" VARCHAR(64) NOT NULL,
  "finished_at" TIMESTAMPTZ,
  "migration_name" VARCHAR(255) NOT NULL,
  "logs" TEXT,
  "rolled_back_at" TIMESTAMPTZ,
  "started_at" TIMESTAMPTZ NOT NULL DEFAULT now(),
  "applied_steps_count" INTEGER NOT NULL DEFAULT 0
)`;

interface How {
  readonly dir: string;
  /** Whether roles that the migrations name, and the server does not have, are made: nobody can do it before the server is started. */
  readonly makesRoles?: boolean;
}

/** By SQLSTATE and name. The name is in quotes. */
const UNDEFINED_OBJECT = '42704';
const MISSING_ROLE = /^role "(.+)" does not exist$/;

/**
 * `prisma migrate deploy` on a database that only tests have, without Prisma's schema engine, which cannot be downloaded
 * everywhere. Returns the names of the migrations that were applied now.
 */
export async function applyMigrations(url: string, { dir, makesRoles = false }: How): Promise<string[]> {
  return await onPostgres(url, async (client) => {
    await useSchema(client, new URL(url).searchParams.get('schema'));
    await client.query(HISTORY_TABLE);
    const { rows } = await client.query('SELECT migration_name FROM "_prisma_migrations"');
    const known = new Set(rows.map((row) => row['migration_name']));
    const folders = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const missing = folders.map(({ name }) => name).filter((name) => !known.has(name));
    for (const name of missing.sort())
      await apply(client, name, readFileSync(join(dir, name, 'migration.sql')), makesRoles);
    return missing;
  });
}

/** The tables without a schema are made in that of the URL, as by Prisma. pg itself ignores it. */
async function useSchema(client: PgClient, schema: string | null): Promise<void> {
  if (schema === null || schema === '') return;
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${quoted}; SET search_path = ${quoted}`);
}

async function apply(client: PgClient, name: string, script: Buffer, makesRoles: boolean): Promise<void> {
  const checksum = createHash('sha256').update(script).digest('hex');
  const startedAt = new Date();
  try {
    // As Prisma does it: Postgres runs several statements of one message in one transaction, and a single one such as
    // CREATE INDEX CONCURRENTLY in none.
    await run(client, script.toString('utf8'), makesRoles);
    await client.query(
      `INSERT INTO "_prisma_migrations" (id, checksum, migration_name, logs, started_at, finished_at, applied_steps_count)
       VALUES ($1, $2, $3, NULL, $4, clock_timestamp(), 1)`,
      [randomUUID(), checksum, name, startedAt],
    );
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const remedy =
      missingRole(cause) === undefined
        ? ''
        : '. Create it on the server of DATABASE_URL: roles are made only on a server that the tests have started';
    throw new Error(`The migration ${name} failed: ${why}${remedy}`, { cause });
  }
}

async function run(client: PgClient, sql: string, makesRoles: boolean): Promise<void> {
  try {
    await client.query(sql);
  } catch (error) {
    const role = makesRoles ? missingRole(error) : undefined;
    if (role === undefined) throw error;
    // The script may have begun a transaction of its own.
    await client.query('ROLLBACK');
    // Fails where it is there, so this comes to an end.
    await client.query(`CREATE ROLE "${role.replaceAll('"', '""')}"`);
    await run(client, sql, makesRoles);
  }
}

function missingRole(error: unknown): string | undefined {
  const { code, message = '' } = error as { readonly code?: unknown; readonly message?: string };
  return code === UNDEFINED_OBJECT ? MISSING_ROLE.exec(message)?.[1] : undefined;
}
