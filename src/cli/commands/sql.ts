import type { Context } from '../context.js';
import { addFences, type FencedTable, type Policy } from '../migrations/fence-sql.js';
import { restrictTo } from '../migrations/grants.js';
import { applicationFunctions, packagedScript } from '../migrations/packaged.js';
import { locate, type ProjectOptions } from '../project/locate.js';
import { History } from '../project/migration-history.js';
import { fenceNameOf, fenceOf } from '../schema/fence-field.js';
import { readModels } from '../schema/models.js';

export interface SqlOptions extends ProjectOptions {
  /** Default: what the guard of each model looks at. */
  readonly field?: string;
  /** Default: what the migrations say of the table, else `allow`. */
  readonly guard?: Policy;
  /** The roles that may lock, beside those of the migrations. */
  readonly role?: readonly string[];
}

/** Written in place of the script: behind a pipe, an empty one would be executed with success. */
export const FAILS =
  "DO $$ BEGIN RAISE EXCEPTION 'fenced-lock sql has failed, and wrote no script: see its message'; END $$;";

/** 1179403083 is 'FLCK'. A lock of one number has nothing to do with those of two, which are the waiting rooms. */
const BEGINS = `-- All of this or nothing, also by psql. Processes that apply it at the same time, as each starts, do so one after the
-- other: their statements on the same objects would fail with "tuple concurrently updated". READ COMMITTED, so that each
-- sees what the one before it has done.
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT pg_catalog.pg_advisory_xact_lock(1179403083);
`;

/**
 * Writes all that the database needs to stdout: the objects, and the column and the guard of each model with a fence. For
 * projects without migrations, whose tables come from `prisma db push`. It may be applied again and again.
 */
export async function sql(context: Context, options: SqlOptions): Promise<void> {
  try {
    await write(context, options);
  } catch (error) {
    context.say(FAILS);
    throw error;
  }
}

async function write(context: Context, options: SqlOptions): Promise<void> {
  const aside = context.aside();
  const project = await locate(aside, options);
  const history = await History.read(aside, project.migrations);
  const guards = history.guards();
  const fenced = readModels(project.schema).flatMap((model) => {
    const table = { name: model.table, schema: model.schema };
    const inForce = guards.get(table);
    const field = model.kind === 'model' ? fenceOf(model, fenceNameOf(model, options.field, inForce)) : undefined;
    if (field === undefined) return [];
    const guard = options.guard ?? (inForce?.policy as Policy | undefined) ?? 'allow';
    const fence: FencedTable = { table, column: field.map ?? field.name, add: true, guard };
    return [{ model: model.name, fence }];
  });
  const packaged = await packagedScript();
  const roles = [...new Set([...history.roles, ...(options.role ?? [])])];
  const script = [
    BEGINS,
    packaged.sql,
    // These are all models with a fence.
    ...(fenced.length > 0
      ? [
          addFences(
            fenced.map(({ fence }) => fence),
            [],
          ),
        ]
      : []),
    // Behind the guards, whose tables' owners need rights, too.
    ...(roles.length > 0 ? [restrictTo(roles, applicationFunctions(packaged.sql))] : []),
    'COMMIT;',
  ].join('\n');
  const models = fenced.map(({ model }) => model);
  context.say(script);
  aside.complain(`fenced-lock: The objects, and the fence of ${models.length > 0 ? models.join(', ') : 'no model'}.`);
  context.document({ command: 'sql', ok: true, version: packaged.version, models, sql: script });
}
