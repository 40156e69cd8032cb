import type { Context } from '../context.js';
import { identifier } from '../migrations/identifiers.js';
import { codeOf, Problem } from '../problem.js';
import { connectPostgres, type PostgresServer } from './postgres.js';

/** Migrations that began and neither finished nor were rolled back; `undefined` if there is no history of Prisma. */
export async function failedMigrations(database: PostgresServer): Promise<string[] | undefined> {
  const sql = `SELECT migration_name AS name FROM ${identifier(database.schema)}._prisma_migrations
    WHERE finished_at IS NULL AND rolled_back_at IS NULL ORDER BY started_at`;
  try {
    return (await database.query<{ name: string }>(sql)).map(({ name }) => name);
  } catch (error) {
    if (codeOf(error) === '42P01') return undefined;
    throw error;
  }
}

/** What to do about migrations that have failed. */
export function resolve(failed: readonly string[]): string {
  const rolledBack = failed.map((name) => `npx prisma migrate resolve --rolled-back ${name}`);
  return `${rolledBack.join(', ')}, then npx prisma migrate deploy`;
}

/** Refuses to add a migration after a failed one, because it could not be applied. @throws Problem */
export async function refuseFailedMigrations(context: Context, url: string): Promise<void> {
  const database = await connectPostgres(context, url);
  try {
    const failed = await failedMigrations(database);
    if (failed === undefined || failed.length === 0) return;
    throw new Problem(
      `Nothing was written: ${failed.join(', ')} failed in ${database.shown}. First ${resolve(failed)}.`,
    );
  } finally {
    await database.close();
  }
}
