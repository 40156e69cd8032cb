import { Problem } from '../problem.js';
import { deploy } from '../project/remedies.js';
import { failedMigrations, rolledBack } from '../servers/failed-migrations.js';
import type { ExpectedFence, PostgresSubject } from './subject.js';

/** Models with a fence whose table no migration creates: those in the database, and those that are not there either. */
export interface Uncreated {
  readonly there: readonly ExpectedFence[];
  readonly missing: readonly ExpectedFence[];
}

export async function findUncreated({ ask, fences, migrates }: PostgresSubject): Promise<Uncreated> {
  const there: ExpectedFence[] = [];
  const missing: ExpectedFence[] = [];
  for (const fence of !migrates || fences instanceof Problem ? [] : fences) {
    if (fence.isCreated) continue;
    const [row] = await ask<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [fence.table]);
    (row?.found ? there : missing).push(fence);
  }
  return { there, missing };
}

/**
 * What makes the missing tables: `prisma migrate dev` was not run for them. The migration of their fences would fail
 * before theirs, so it is made again behind it.
 */
export async function createTables(
  { database, fences }: PostgresSubject,
  missing: readonly ExpectedFence[],
): Promise<string> {
  const tooEarly = new Set(missing.flatMap(({ addedBy }) => addedBy ?? []));
  const failed = (await failedMigrations(database)) ?? [];
  // It may add the fences of other models, too.
  const again =
    fences instanceof Problem
      ? missing
      : fences.filter((fence) => missing.includes(fence) || tooEarly.has(fence.addedBy ?? ''));
  const steps = [
    ...failed.map(rolledBack),
    ...[...tooEarly].map((name) => `delete the folder of the migration ${name}`),
    'npx prisma migrate dev --name tables',
    `npx fenced-lock add-fence ${again.map(({ model }) => model).join(' ')}`,
    'npx prisma migrate deploy',
  ];
  return `${steps.join(', then ')}. If prisma db push makes your tables: ${deploy(false)}`;
}
