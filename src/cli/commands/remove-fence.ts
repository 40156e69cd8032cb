import type { Context } from '../context.js';
import { removeFences } from '../migrations/fence-sql.js';
import { choose } from '../schema/choose.js';
import { fencedTables, fenceNameOf, fenceOf, withoutFence } from '../schema/fence-field.js';
import { readModels } from '../schema/models.js';
import { carryOut, type FileOptions, migrationName, nothingToDo, open } from './files.js';

export interface RemoveFenceOptions extends FileOptions {
  /** Default: the column that the guard of the model checks. */
  readonly field?: string;
}

/** Prisma applies no migration to a database that has tables and no history. */
const pushed = (folder: string) => [
  'Careful: this is the first migration of the project. If prisma db push made its tables, migrate deploy refuses the',
  '  database (P3005). In place of step 3: npx prisma db execute --file, with the migration.sql that was written into',
  `  ${folder}; then delete that folder again.`,
];

/** Removes the fence of models: the guard, the column and the field. */
export async function removeFence(
  context: Context,
  names: readonly string[],
  options: RemoveFenceOptions,
): Promise<void> {
  const { project, history } = await open(context, options);
  const guards = history.guards();
  const all = readModels(project.schema);
  const models = choose(all, names);
  const fenced = models
    .map((model) => {
      const table = { name: model.table, schema: model.schema };
      const name = fenceNameOf(model, options.field, guards.get(table));
      return { model, table, field: fenceOf(model, name) };
    })
    .filter(({ field, table }) => field !== undefined || guards.has(table));
  if (fenced.length === 0) {
    nothingToDo(context, 'remove-fence', `${names.join(', ')}: there is neither a fence nor a guard.`);
    return;
  }
  const schema = [...project.schema].flatMap(([path, before]) => {
    const here = fenced
      .filter(({ model }) => model.file === path)
      .toSorted((a, b) => (b.field?.start ?? 0) - (a.field?.start ?? 0));
    const after = here.reduce((text, { model, field }) => (field ? withoutFence(text, model, field) : text), before);
    return after === before ? [] : [{ path, before, after }];
  });
  const kept = all.filter((model) => !models.includes(model));
  const sql = removeFences(
    fenced.map(({ field, table }) => ({ table, column: field && (field.map ?? field.name) })),
    fencedTables(kept, guards, options.field),
  );
  await carryOut(context, history, options, {
    command: 'remove-fence',
    schema,
    migration: {
      name: migrationName(
        'remove_fence',
        fenced.map(({ model }) => model.name),
      ),
      sql,
    },
    next: [
      'Careful: processes that know the fence rely on its guard, and cannot write without its column. In this order:',
      '  1. npx prisma generate, and deploy the application without the fence.',
      '  2. Wait until no process of the old one runs.',
      '  3. npx prisma migrate deploy',
      ...(history.isEmpty ? pushed(context.shown(history.folder)) : []),
    ],
    data: { models: fenced.map(({ model }) => model.name) },
  });
}
