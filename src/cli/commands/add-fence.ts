import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { addFences, type FencedTable, type Policy } from '../migrations/fence-sql.js';
import { grantToOwners } from '../migrations/grants.js';
import { GUARD } from '../migrations/guard-sql.js';
import { tableName } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import type { Change } from '../project/changes.js';
import type { GuardedTables } from '../project/guarded-tables.js';
import type { History } from '../project/migration-history.js';
import { FROM_PUSH, PUSHED } from '../project/remedies.js';
import { choose, omitLine } from '../schema/choose.js';
import { fencedTables, fenceIn, fenceOf, withFence } from '../schema/fence-field.js';
import { readModels, type SchemaModel } from '../schema/models.js';
import { connectPostgres } from '../servers/postgres.js';
import { carryOut, type FileOptions, migrationName, nothingToDo, open } from './files.js';

export interface AddFenceOptions extends FileOptions {
  readonly field: string;
  /** `undefined`: `allow` for a table without a guard, the present policy for a table with one. */
  readonly guard?: Policy;
}

/** Gives models a fence: the field, its column, and the guard of its table. */
export async function addFence(context: Context, names: readonly string[], options: AddFenceOptions): Promise<void> {
  const { project, history } = await open(context, options);
  const all = readModels(project.schema);
  const models = choose(all, names);
  const guards = history.guards();
  const planned = models.map((model) => ({ model, ...fenceFor(model, guards, options) }));
  const wanted = planned.filter(({ isNew, fence }) => isNew || fence.guard !== undefined);
  if (wanted.length === 0) {
    if (options.databaseUrl !== undefined) await refuseWithoutGuard(context, options.databaseUrl, planned);
    nothingToDo(context, 'add-fence', `${names.join(', ')}: the fence and the guard are there already.`);
    return;
  }
  const guarded = wanted.some(({ fence }) => fence.guard !== undefined && fence.guard !== 'none');
  // A look at what it would write is possible before anything is written.
  if (guarded && options.dryRun !== true) refuseWithoutObjects(history);
  const unguarded = wanted.filter(({ fence }) => fence.guard === 'none');
  const anew = options.guard === undefined ? wanted.filter(({ isNew, fence }) => !isNew && fence.add) : [];
  const fenced = all.filter((model) => fenceIn(model, options.field) !== undefined || models.includes(model));
  const omit = omitLine(fenced, options.field);
  await carryOut(context, history, options, {
    command: 'add-fence',
    schema: edited(
      project.schema,
      planned.filter(({ isNew }) => isNew).map(({ model }) => model),
      options.field,
    ),
    migration: {
      name: migrationName(
        'add_fence',
        wanted.map(({ model }) => model.name),
      ),
      sql: [
        addFences(
          wanted.map(({ fence }) => fence),
          fencedTables(all, guards, options.field),
        ),
        ...(guarded && history.roles.length > 0 ? [grantToOwners()] : []),
      ].join('\n'),
    },
    next: [
      ...(guarded && history.initial === undefined ? ['First: npx fenced-lock init.'] : []),
      ...(unguarded.length > 0
        ? restartAround(unguarded.map(({ model }) => model.name).join(', '))
        : ['Next: npx prisma migrate deploy && npx prisma generate.']),
      ...anew.map(
        ({ model, fence }) =>
          `${model.name} has no guard yet, and gets one (${fence.guard}). To leave it without: --guard none.`,
      ),
      ...(options.field === DEFAULTS.fenceField
        ? []
        : [`The client needs the name of the field: fencedLock({ redis, fenceField: '${options.field}' })`]),
      'If these rows are sent as JSON, which has no bigint, leave the fence out for the whole client:',
      `  new PrismaClient({ adapter, ${omit} })`,
      ...notCreated(wanted.map(({ model }) => model).filter((model) => !history.creates(model))),
    ],
    data: { omit, models: wanted.map(({ model }) => model.name) },
  });
}

interface PlannedFence {
  readonly fence: FencedTable;
  /** Whether the schema lacks the field. */
  readonly isNew: boolean;
}

function fenceFor(model: SchemaModel, guards: GuardedTables, { field, guard }: AddFenceOptions): PlannedFence {
  const table = { name: model.table, schema: model.schema };
  const existing = fenceOf(model, field);
  const column = existing?.map ?? field;
  const known = guards.get(table);
  const policy = guard ?? known?.policy ?? 'allow';
  const same =
    known === undefined ? policy === 'none' : known.policy === policy && known.column === column && !known.isLost;
  const isNew = existing === undefined;
  // A guard whose column is missing would fail every write, and a field that stands in the schema may have no column yet.
  return {
    isNew,
    fence: { table, column, add: isNew || !known || known.isLost, guard: same ? undefined : (policy as Policy) },
  };
}

/** A table that the schema has and the database does not: its migration would come after this one, which fails without it. */
function notCreated(models: readonly SchemaModel[]): string[] {
  if (models.length === 0) return [];
  return [
    `Careful: no migration creates the table of ${models.map(({ name }) => name).join(', ')}.`,
    '  Where it is not in the database yet, this migration fails: delete its folder, run npx prisma migrate dev, and then',
    '  add-fence again.',
    '  Where prisma db push made it and the database has no history, migrate deploy refuses it (P3005), and migrate dev',
    `  would empty it. Use ${PUSHED} in place of migrations, or record`,
    '  the table in a first migration, which has to create it:',
    `  ${FROM_PUSH}`,
  ];
}

/** Running clients know the guards from before, and add no conditions to writes of tables that had a guard. */
function restartAround(models: string): string[] {
  return [
    `Careful: running clients rely on the guard of ${models}, and write there without protection when it is gone. In this order:`,
    '  1. Stop every process that locks.',
    '  2. npx prisma migrate deploy && npx prisma generate',
    '  3. Start them again: each then asks which tables have a guard.',
  ];
}

function refuseWithoutObjects(history: History): void {
  if (history.initial !== undefined) return;
  if (history.isEmpty) {
    throw new Problem(
      'The guard needs the objects of fenced_lock, and this project has no migrations. With prisma db push: write ' +
        `\`fence BigInt @default(0)\` into the model, then npx prisma db push, then ${PUSHED}. To begin with migrations, on ` +
        `a database without tables: run npx fenced-lock init first. With tables: ${FROM_PUSH}`,
    );
  }
  throw new Problem(
    'The guard needs the objects of fenced_lock, and no migration makes them: run npx fenced-lock init first.',
  );
}

/** Nothing is left to write, and yet the database may lack the guard: its migration was not applied, or it was pushed. */
async function refuseWithoutGuard(
  context: Context,
  url: string,
  planned: ReadonlyArray<{ readonly model: SchemaModel; readonly fence: FencedTable }>,
): Promise<void> {
  const database = await connectPostgres(context, url);
  try {
    for (const { model, fence } of planned) {
      const table = tableName({ ...fence.table, schema: fence.table.schema ?? database.schema });
      const found = await database.query(HAS_GUARD, [table, GUARD]);
      if (found.length > 0) continue;
      throw new Problem(
        `${model.name}: schema and migrations have the fence, and ${database.shown} has no guard on ${table}. Run npx ` +
          `prisma migrate deploy; if the tables come from prisma db push: ${PUSHED}.`,
      );
    }
  } finally {
    await database.close();
  }
}

const HAS_GUARD = 'SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = $2';

/**
 * The changed schema files. Models of a file are edited from the last to the first, so that their offsets stay valid.
 */
function edited(schema: ReadonlyMap<string, string>, models: readonly SchemaModel[], field: string): Change[] {
  return [...schema].flatMap(([path, before]) => {
    const here = models.filter(({ file }) => file === path);
    const backwards = here.toSorted((a, b) => (b.fields.at(-1)?.end ?? 0) - (a.fields.at(-1)?.end ?? 0));
    const after = backwards.reduce((text, model) => withFence(text, model, field), before);
    return after === before ? [] : [{ path, before, after }];
  });
}
