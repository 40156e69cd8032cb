import type { Context } from '../context.js';
import { fenceScript, type Policy } from '../migrations/fence-sql.js';
import { restrictTo } from '../migrations/grants.js';
import { applicationFunctions, packagedScript } from '../migrations/packaged.js';
import { fencesOf, refuseOther } from '../project/fences.js';
import { openProject, type ProjectOptions } from '../project/locate.js';

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
  const aside = context.aside();
  const project = await openProject(aside, options);
  const fences = fencesOf(project, options.field).flatMap((fence) => {
    const { model, field, guard: inForce } = refuseOther(fence);
    if (field === undefined) return [];
    const guard = options.guard ?? (inForce?.policy as Policy | undefined) ?? 'allow';
    return [{ model: model.name, table: model.table, column: field.column, alter: 'ADD' as const, guard }];
  });
  const { version, sql } = await packagedScript();
  const roles = [...new Set([...project.history.roles, ...(options.role ?? [])])];
  const script = [
    BEGINS,
    sql,
    // These are all models with a fence.
    ...(fences.length > 0 ? [fenceScript(fences, [])] : []),
    // Behind the guards, whose tables' owners need rights, too.
    ...(roles.length > 0 ? [restrictTo(roles, applicationFunctions(sql))] : []),
    'COMMIT;',
  ].join('\n');
  const models = fences.map(({ model }) => model);
  context.say(script);
  aside.complain(`fenced-lock: The objects, and the fence of ${models.length > 0 ? models.join(', ') : 'no model'}.`);
  context.document({ command: 'sql', ok: true, version, models, sql: script });
}
