import type { Guard } from '../migrations/guard-sql.js';
import { type Table, tableName } from '../migrations/identifiers.js';

/** Tables without a schema are in this one, unless the URL of the database names another. */
const DEFAULT_SCHEMA = 'public';

const NAME = String.raw`(?:"(?:[^"]|"")*"|\w+)`;
const TABLE = String.raw`${NAME}(?:\s*\.\s*${NAME})?`;
/** The statements that this package writes, and how a table gets another name. */
const STATEMENTS = new RegExp(
  [
    String.raw`TRIGGER\s+"?zzz_fenced_lock_guard"?\s+BEFORE\s+[\w\s]+?\s+ON\s+(?<guarded>${TABLE})\s+` +
      String.raw`FOR\s+EACH\s+ROW\s+EXECUTE\s+FUNCTION\s+fenced_lock\.guard\(\s*'(?<column>(?:[^']|'')*)'\s*,\s*'(?<policy>\w+)'\s*\)`,
    String.raw`DROP\s+TRIGGER\s+(?:IF\s+EXISTS\s+)?"?zzz_fenced_lock_guard"?\s+ON\s+(?<unguarded>${TABLE})`,
    String.raw`ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?<altered>${TABLE})\s+(?:RENAME\s+TO\s+(?<name>${NAME})|SET\s+SCHEMA\s+(?<schema>${NAME}))`,
  ].join('|'),
  'gi',
);

/**
 * The guard of each table after these scripts, in the order in which they are applied. The names of tables may stand with the default
 * schema or without one.
 */
export function guardsAfter(scripts: readonly string[]): (table: Table) => Guard | undefined {
  const guards = new Map<string, Guard>();
  for (const { groups = {} } of scripts.flatMap((sql) => [...sql.matchAll(STATEMENTS)])) {
    const { guarded, column = '', policy = '', unguarded, altered = '', name, schema = '' } = groups;
    const before = read(guarded ?? unguarded ?? altered);
    const guard = guarded === undefined ? guards.get(keyOf(before)) : { column: column.replaceAll("''", "'"), policy };
    if (guard === undefined) continue;
    guards.delete(keyOf(before));
    if (unguarded !== undefined) continue;
    const moved = name === undefined ? { ...before, schema: plain(schema) } : { ...before, name: plain(name) };
    guards.set(keyOf(guarded === undefined ? moved : before), guard);
  }
  return (table) => guards.get(keyOf(table));
}

function keyOf({ schema, name }: Table): string {
  return tableName({ name, schema: schema ?? DEFAULT_SCHEMA });
}

function read(table: string): Table {
  const names = (table.match(new RegExp(NAME, 'g')) ?? []).map(plain);
  return { name: names.at(-1) ?? '', schema: names.length > 1 ? names[0] : undefined };
}

const plain = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase());
