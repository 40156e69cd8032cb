import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { addFences, type FencedTable, type Policy } from '../migrations/fence-sql.js';
import { grantToOwners } from '../migrations/grants.js';
import { Problem } from '../problem.js';
import type { Change } from '../project/changes.js';
import type { GuardedTables } from '../project/guarded-tables.js';
import type { History } from '../project/migration-history.js';
import { FROM_PUSH, PUSHED } from '../project/remedies.js';
import { choose, omitLine } from '../schema/choose.js';
import { fencedTables, fenceIn, fenceOf, withFence } from '../schema/fence-field.js';
import { readModels, type SchemaModel } from '../schema/models.js';
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
  const same = known === undefined ? policy === 'none' : known.policy === policy && known.column === column;
  const isNew = existing === undefined;
  // A guard whose column is missing would fail every write, and a field that stands in the schema may have no column yet.
  return {
    isNew,
    fence: { table, column, add: isNew || !known, guard: same ? undefined : (policy as Policy) },
  };
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
