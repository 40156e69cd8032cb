import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { type Change, write } from '../project/changes.js';
import { openProject, type Project, type ProjectOptions } from '../project/locate.js';
import { failedMigrations, resolve, withPostgres } from '../servers/postgres.js';

/** Options of the commands that write files. */
export interface FileOptions extends ProjectOptions {
  readonly dryRun?: boolean;
  /** Shows a script of the package in full. A diff that depends on the project is always shown. */
  readonly print?: boolean;
  /** Only used to check that no migration has failed there. */
  readonly databaseUrl?: string;
}

/** What a command is going to write. */
interface Plan {
  readonly command: string;
  /** Changed files of the schema. */
  readonly schema?: readonly Change[];
  readonly migration: { readonly name: string; readonly sql: string };
  /** A short description of the script, shown instead of the script. */
  readonly brief?: string;
  /** What to do next, one line each. */
  readonly next: readonly string[];
  /** Additional data for --json. */
  readonly data?: object;
}

/** The project that the command adds to. @throws Problem if a migration has failed: a later one could not be applied. */
export async function open(context: Context, options: FileOptions): Promise<Project> {
  const project = await openProject(context, options);
  if (options.databaseUrl === undefined) return project;
  return await withPostgres(context, options.databaseUrl, async (database) => {
    const failed = (await failedMigrations(database)) ?? [];
    if (failed.length === 0) return project;
    const message = `Nothing was written: ${failed.join(', ')} failed in ${database.shown}. First ${resolve(failed)}.`;
    throw new Problem(message);
  });
}

/** Shows the changes, then writes all files or none. */
export async function carryOut(
  context: Context,
  { history }: Project,
  { dryRun = false, print = false }: FileOptions,
  plan: Plan,
): Promise<void> {
  const { name, changes } = history.next(plan.migration.name, plan.migration.sql, context.now());
  const all = [...(plan.schema ?? []), ...changes];
  const files = all.map(({ path, before, after }) => ({
    path: context.shown(path),
    change: before === undefined ? 'new' : 'changed',
    diff: difference(context.shown(path), before, after),
  }));
  const isBrief = plan.brief !== undefined && !dryRun && !print;
  if (!isBrief) {
    for (const { diff } of files) context.say(diff);
  }
  if (!dryRun) await write(all);
  if (!isBrief) context.say();
  const written = `Written: ${files.map(({ path }) => path).join(', ')}${isBrief ? ` (${plan.brief})` : ''}`;
  context.say(dryRun ? 'Nothing was written (--dry-run).' : written);
  for (const line of plan.next) context.say(line);
  context.document({ command: plan.command, ok: true, dryRun, migration: name, files, next: plan.next, ...plan.data });
}

/** A unified diff of two versions of a file; empty if they are equal. If `before` is undefined, the file is new. */
function difference(path: string, before: string | undefined, after: string): string {
  if (before === after) return '';
  const from = before === undefined ? '/dev/null' : `a/${path}`;
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY };
  // Without carriage returns, which would garble a terminal.
  const [one, other] = [before ?? '', after].map((text) => text.replaceAll('\r\n', '\n')) as [string, string];
  return createTwoFilesPatch(from, `b/${path}`, one, other, undefined, undefined, options).replace(/\n$/, '');
}

export function nothingToDo(context: Context, command: string, why: string): void {
  context.say(`Nothing to do: ${why}`);
  context.document({ command, ok: true, migration: null, files: [], reason: why });
}

const LONGEST = 80;

/** The name of a migration, such as `add_fence_stock_order`, with the characters that Prisma uses. */
export function migrationName(what: string, models: readonly string[]): string {
  const snake = (name: string) => name.replaceAll(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase();
  const name = [what, ...models.map(snake)].join('_');
  return name.length <= LONGEST ? name : `${what}_${models.length}_models`;
}
