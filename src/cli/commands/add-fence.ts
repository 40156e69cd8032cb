import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { fenceScript, type Policy } from '../migrations/fence-sql.js';
import { grantToOwners } from '../migrations/grants.js';
import { Problem } from '../problem.js';
import { choose, edited, type Fence, fencesOf, omitLine, tablesOf, withFence } from '../project/fences.js';
import type { History } from '../project/migration-history.js';
import { FROM_PUSH, PUSHED } from '../project/remedies.js';
import { carryOut, type FileOptions, migrationName, nothingToDo, open } from './files.js';

export interface AddFenceOptions extends FileOptions {
  readonly field: string;
  /** `undefined`: `allow` for a table without a guard, the present policy for a table with one. */
  readonly guard?: Policy;
}

/** Gives models a fence: the field, its column, and the guard of its table. */
export async function addFence(context: Context, names: readonly string[], options: AddFenceOptions): Promise<void> {
  const project = await open(context, options);
  const { history } = project;
  const all = fencesOf(project, options.field);
  const wanted = choose(all, names)
    .map((fence) => ({ ...fence, to: tableOf(fence, options.guard) }))
    .filter(({ field, to }) => field === undefined || to.guard !== undefined);
  const models = wanted.map(({ model }) => model.name);
  if (wanted.length === 0) {
    nothingToDo(context, 'add-fence', `${names.join(', ')}: the fence and the guard are there already.`);
    return;
  }
  const guarded = wanted.filter(({ to }) => to.guard !== undefined && to.guard !== 'none');
  const bare = wanted.filter(({ to }) => to.guard === 'none');
  // A look at what it would write is possible before anything is written.
  if (guarded.length > 0 && options.dryRun !== true) refuseWithoutObjects(history);
  const tables = fenceScript(
    wanted.map(({ to }) => to),
    tablesOf(all),
  );
  const omit = omitLine(all.filter(({ field, model }) => field || models.includes(model.name)));
  await carryOut(context, project, options, {
    command: 'add-fence',
    schema: edited(project, wanted, withFence),
    migration: {
      name: migrationName('add_fence', models),
      sql: [tables, ...(guarded.length > 0 && history.roles.length > 0 ? [grantToOwners()] : [])].join('\n'),
    },
    next: [
      ...(guarded.length > 0 && history.objects === undefined ? ['First: npx fenced-lock init.'] : []),
      ...(bare.length > 0
        ? restartAround(bare.map(({ model }) => model.name).join(', '))
        : ['Next: npx prisma migrate deploy && npx prisma generate. The tables have to be there: make them first.']),
      ...(options.field === DEFAULTS.fenceField
        ? []
        : [`The client needs the name of the field: fencedLock({ redis, fenceField: '${options.field}' })`]),
      'If these rows are sent as JSON, which has no bigint, leave the fence out for the whole client:',
      `  new PrismaClient({ adapter, ${omit} })`,
    ],
    data: { omit, models },
  });
}

/** What the migration does with the table. `guard` is `undefined` where the guard is as it should be. */
function tableOf({ model, name, field, guard }: Fence, policy: Policy | undefined) {
  const column = field?.column ?? name;
  const wanted = policy ?? ((guard?.policy ?? 'allow') as Policy);
  const isSame = guard ? guard.policy === wanted && guard.column === column : wanted === 'none';
  // A guard whose column is missing would fail every write, and a field that stands in the schema may have no column yet.
  return {
    table: model.table,
    column,
    alter: !field || !guard ? ('ADD' as const) : undefined,
    guard: isSame ? undefined : wanted,
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
  if (history.objects !== undefined) return;
  throw new Problem(
    'The guard needs the objects of fenced_lock, and no migration makes them: run npx fenced-lock init first. With prisma db ' +
      `push, in place of both: write \`fence BigInt @default(0)\` into the model, then npx prisma db push, then ${PUSHED}. To ` +
      `go over to migrations: ${FROM_PUSH}`,
  );
}
