import type { Context } from '../context.js';
import { fenceScript, type Policy } from '../migrations/fence-sql.js';
import { restrictTo } from '../migrations/grants.js';
import type { Table } from '../migrations/identifiers.js';
import { applicationFunctions, packagedScript } from '../migrations/packaged.js';
import { Misuse } from '../problem.js';
import { fencesOf, refuseOther } from '../project/fences.js';
import { NoProject, openProject, type Project, type ProjectOptions } from '../project/locate.js';
import { visible } from '../visible.js';

export interface SqlOptions extends ProjectOptions {
  /** These tables, in place of the models of a project. */
  readonly table?: readonly Table[];
  /** The column of their fences. */
  readonly column: string;
  /** Takes their fences away. */
  readonly down?: boolean;
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

/** Other tools run a migration in a transaction of their own, and often all migrations in one. */
const UNLIMITED = `-- For what follows in this transaction:
SET LOCAL lock_timeout = DEFAULT;
SET LOCAL statement_timeout = DEFAULT;
`;

/**
 * Writes all that the database needs to stdout: the objects, and the column and the guard of each fence. It may be applied again and
 * again. For the models of a project without migrations, whose tables come from `prisma db push`, it is a transaction; without a
 * project it is a part of one, for a migration of any tool.
 */
export async function sql(context: Context, options: SqlOptions): Promise<void> {
  const { table: tables, down = false } = options;
  if (down && tables === undefined) throw new Misuse('--down takes the fences of tables away: name them by --table.');
  const aside = context.aside();
  const project = tables ? undefined : await openProject(aside, options).catch(none);
  const { version, sql: objects } = await packagedScript();
  const fences = project ? ofModels(project, options) : ofTables(options);
  const roles = [...new Set([...(project?.history.roles ?? []), ...(options.role ?? [])])];
  const script = [
    ...(project ? [BEGINS] : []),
    ...(down ? [] : [objects]),
    // These are all models with a fence.
    ...(fences.length > 0 ? [fenceScript(fences, [])] : []),
    ...(fences.length > 0 && !project ? [UNLIMITED] : []),
    // Behind the guards, whose tables' owners need rights, too.
    ...(roles.length > 0 ? [restrictTo(roles, applicationFunctions(objects))] : []),
    ...(project ? ['COMMIT;'] : []),
  ].join('\n');
  const names = fences.map(({ name }) => name);
  const which =
    names.map(visible).join(', ') || (project ? 'no model' : 'no table: no Prisma schema is here, and no --table');
  context.say(script);
  aside.complain(`fenced-lock: ${down ? 'Takes away' : 'The objects, and'} the fence of ${which}.`);
  context.document({ command: 'sql', ok: true, version, [project ? 'models' : 'tables']: names, sql: script });
}

function none(error: unknown): undefined {
  if (!(error instanceof NoProject)) throw error;
}

function ofTables({ table: tables = [], column, down, guard = 'allow' }: SqlOptions) {
  const [alter, policy] = down ? (['DROP', 'none'] as const) : (['ADD', guard] as const);
  return tables.map((table) => {
    return { name: [table.schema, table.name].filter(Boolean).join('.'), table, column, alter, guard: policy };
  });
}

function ofModels(project: Project, options: SqlOptions) {
  return fencesOf(project, options.field).flatMap((fence) => {
    const { model, field, guard: inForce } = refuseOther(fence);
    if (field === undefined) return [];
    const guard = options.guard ?? (inForce?.policy as Policy | undefined) ?? 'allow';
    return [{ name: model.name, table: model.table, column: field.column, alter: 'ADD' as const, guard }];
  });
}
