import type { Context } from '../context.js';
import { fenceScript } from '../migrations/fence-sql.js';
import { choose, edited, fencesOf, tablesOf, withoutFence } from '../project/fences.js';
import { carryOut, type FileOptions, migrationName, nothingToDo, open } from './files.js';

export interface RemoveFenceOptions extends FileOptions {
  /** Default: the column that the guard of the model checks. */
  readonly field?: string;
}

/** Removes the fence of models: the guard, the column and the field. */
export async function removeFence(
  context: Context,
  names: readonly string[],
  options: RemoveFenceOptions,
): Promise<void> {
  const project = await open(context, options);
  const { history } = project;
  const all = fencesOf(project, options.field);
  const fenced = choose(all, names).filter(({ field, guard }) => field || guard);
  if (fenced.length === 0) {
    nothingToDo(context, 'remove-fence', `${names.join(', ')}: there is neither a fence nor a guard.`);
    return;
  }
  const models = fenced.map(({ model }) => model.name);
  const sql = fenceScript(
    fenced.map(({ field, name, model: { table } }) => {
      return { table, column: field?.column ?? name, alter: field && 'DROP', guard: 'none' };
    }),
    tablesOf(all.filter(({ model }) => !models.includes(model.name))),
  );
  await carryOut(context, project, options, {
    command: 'remove-fence',
    schema: edited(project, fenced, withoutFence),
    migration: { name: migrationName('remove_fence', models), sql },
    next: [
      'Careful: processes that know the fence rely on its guard, and cannot write without its column. In this order:',
      '  1. npx prisma generate, and deploy the application without the fence.',
      '  2. Wait until no process of the old one runs.',
      '  3. npx prisma migrate deploy',
      ...(history.isEmpty ? pushed(history.shown) : []),
    ],
    data: { models },
  });
}

/** Prisma applies no migration to a database that has tables and no history. */
const pushed = (folder: string) => [
  'Careful: this is the first migration of the project. If prisma db push made its tables, migrate deploy refuses the',
  '  database (P3005). In place of step 3: npx prisma db execute --file, with the migration.sql that was written into',
  `  ${folder}; then delete that folder again.`,
];
