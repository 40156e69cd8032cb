import { readFile } from 'node:fs/promises';
import { Problem } from '../problem.js';

/** The database objects as one script, which makes them or brings those of an older version up to its own. */
export interface Packaged {
  readonly version: number;
  readonly sql: string;
}

/** From src/cli/migrations and from dist/cli/migrations alike. */
const SCRIPT = new URL('../../../prisma/migrations/20261101000000_fenced_lock/migration.sql', import.meta.url);

/** A line of the script, and what doctor reads in the database. */
const MARKER = /^COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects (\d+)';$/gm;
const COMMENT = /^prisma-extension-fenced-lock objects (\d+)$/;

/** The script that this package brings. */
export async function packagedScript(): Promise<Packaged> {
  const sql = await readFile(SCRIPT, 'utf8');
  const version = versionIn(sql);
  if (version === undefined) throw new Problem('This package is broken: its migration has no version.');
  return { version, sql };
}

/** The version of the objects after this script; `undefined` if it does not set one. */
export function versionIn(sql: string): number | undefined {
  const last = [...sql.matchAll(MARKER)].at(-1)?.[1];
  return last === undefined ? undefined : Number(last);
}

/** The version that the schema's comment in the database tells. */
export function versionOfComment(comment: string | null | undefined): number | undefined {
  const version = COMMENT.exec(comment ?? '')?.[1];
  return version === undefined ? undefined : Number(version);
}

/** The functions that a role of the application has to be able to call, with their arguments, as GRANT takes them. */
export function applicationFunctions(sql: string): string[] {
  const list = /^ *for_applications constant pg_catalog\.text := '([^']*)';$/m.exec(sql)?.[1] ?? '';
  return list.split(/,(?![^(]*\))/).map((name) => name.trim());
}

/** Whether a script makes our schema: also one without a version, copied before there were any. */
export function makesObjects(sql: string): boolean {
  return /^CREATE SCHEMA (?:IF NOT EXISTS )?fenced_lock;/m.test(sql);
}
