import { readFile } from 'node:fs/promises';
import { Problem } from '../problem.js';

/** The database objects as one script, which creates them or upgrades an older version. */
export interface Packaged {
  readonly version: number;
  readonly sql: string;
}

/** The path is the same from src/cli/migrations and dist/cli/migrations. */
const SCRIPT = new URL('../../../prisma/migrations/20261101000000_fenced_lock/migration.sql', import.meta.url);

/** The version marker: as a line of the script, and as the schema's comment in the database. */
const MARKER = /^(?:COMMENT ON SCHEMA fenced_lock IS ')?prisma-extension-fenced-lock objects (\d+)(?:';)?$/gm;

/** The script of this package. */
export async function packagedScript(): Promise<Packaged> {
  const sql = await readFile(SCRIPT, 'utf8');
  const version = versionIn(sql);
  if (version === undefined) throw new Problem('This package is broken: its migration has no version.');
  return { version, sql };
}

/** The version of the objects after this script, or of such a comment; `undefined` if it does not set one. */
export function versionIn(text: string): number | undefined {
  const last = [...text.matchAll(MARKER)].at(-1)?.[1];
  return last === undefined ? undefined : Number(last);
}

/** The functions that an application's role must be able to call, with their arguments, in the form for GRANT. */
export function applicationFunctions(sql: string): string[] {
  const list = /^ *for_applications constant pg_catalog\.text := '([^']*)';$/m.exec(sql)?.[1] ?? '';
  return list.split(/,(?![^(]*\))/).map((name) => name.trim());
}

const RELATION = /^CREATE (?:UNLOGGED )?(TABLE|SEQUENCE) IF NOT EXISTS fenced_lock\.(\w+)(?: \(\n([\s\S]*?)^\))?/gm;
const COLUMN = /^ {4}(\w+) /gm;
const FUNCTION = /^CREATE OR REPLACE FUNCTION fenced_lock\.(\w+)\(([^)]*)\)/gm;

/** What a script creates in the schema fenced_lock, such as `column admission.key` or `function override(text)`. */
export function objectsIn(sql: string): string[] {
  const relations = [...sql.matchAll(RELATION)].flatMap(([, kind = '', name, columns = '']) => [
    `${kind.toLowerCase()} ${name}`,
    ...[...columns.matchAll(COLUMN)].map(([, column]) => `column ${name}.${column}`),
  ]);
  return [...relations, ...[...sql.matchAll(FUNCTION)].map(([, name, args]) => `function ${name}(${typesOf(args)})`)];
}

/** The types of the arguments that a caller gives, as `oidvectortypes` shows them. */
function typesOf(args = ''): string {
  const given = args.split(',').filter((arg) => !/^\s*(OUT\b|$)/.test(arg));
  return given.map((arg) => arg.trim().replace(/^\w+ | DEFAULT .*$/g, '')).join(', ');
}
