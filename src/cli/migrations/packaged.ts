import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Problem } from '../problem.js';

/** One version of the database objects, as a migration from the version before it. */
export interface Packaged {
  readonly version: number;
  readonly sql: string;
}

/** From src/cli/migrations and from dist/cli/migrations alike. */
const FOLDER = fileURLToPath(new URL('../../../prisma/migrations/', import.meta.url));

/** The last line of each such migration, and what doctor reads in the database. */
const MARKER = /^COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects (\d+)';$/gm;
const COMMENT = /^prisma-extension-fenced-lock objects (\d+)$/;

/** The migrations that this package brings, oldest first. */
export async function packagedMigrations(folder = FOLDER): Promise<Packaged[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{14}_fenced_lock(_|$)/.test(name)).sort();
  const read = async (name: string): Promise<Packaged> => {
    const sql = await readFile(join(folder, name, 'migration.sql'), 'utf8');
    const version = versionIn(sql);
    if (version === undefined) throw new Problem(`This package is broken: its migration ${name} has no version.`);
    return { version, sql };
  };
  const all = await Promise.all(names.map(read));
  if (all.length === 0) throw new Problem('This package is broken: it has no migrations.');
  return all.sort((a, b) => a.version - b.version);
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

/** Whether a script makes our schema: also one without a version, copied before there were any. */
export function makesObjects(sql: string): boolean {
  return /^CREATE SCHEMA fenced_lock;/m.test(sql);
}
