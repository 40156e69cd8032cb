import { type Table, tableName } from '../migrations/identifiers.js';

/** The guard of a table after all migrations. */
export interface Guarded {
  readonly column: string;
  readonly policy: string;
}

/** What a statement does to the guard of a table: it gives it one, takes it away, or gives the table another name. */
type Step =
  | { readonly table: string; readonly guard: Guarded }
  | { readonly table: string; readonly guard: undefined }
  | { readonly table: string; readonly renamed: string };

/** Tables without a schema are in this one, unless the URL of the database names another. */
const DEFAULT_SCHEMA = 'public';

const NAME = String.raw`(?:"(?:[^"]|"")*"|\w+)`;
const TABLE = String.raw`${NAME}(?:\s*\.\s*${NAME})?`;
const STATEMENT = new RegExp(
  [
    String.raw`CREATE\s+(?:OR\s+REPLACE\s+)?TRIGGER\s+"?zzz_fenced_lock_guard"?\s+BEFORE\s+[\w\s]+?\s+ON\s+(?<guarded>${TABLE})\s+` +
      String.raw`FOR\s+EACH\s+ROW\s+EXECUTE\s+FUNCTION\s+fenced_lock\.guard\(\s*'(?<column>(?:[^']|'')*)'\s*,\s*'(?<policy>\w+)'\s*\)`,
    String.raw`DROP\s+TRIGGER\s+(?:IF\s+EXISTS\s+)?"?zzz_fenced_lock_guard"?\s+ON\s+(?<unguarded>${TABLE})`,
    String.raw`DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?<dropped>${TABLE}(?:\s*,\s*${TABLE})*)`,
    String.raw`ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?<altered>${TABLE})\s+(?:RENAME\s+TO\s+(?<name>${NAME})|SET\s+SCHEMA\s+(?<schema>${NAME}))`,
  ].join('|'),
  'gi',
);

/** The guards of tables, whether their names stand with the default schema or without one. */
export class GuardedTables {
  readonly #guards = new Map<string, Guarded>();

  /** Those after these scripts. */
  static after(scripts: readonly string[]): GuardedTables {
    const tables = new GuardedTables();
    for (const step of scripts.flatMap(stepsOf)) tables.#apply(step);
    return tables;
  }

  get(table: Table): Guarded | undefined {
    return this.#guards.get(keyOf(table));
  }

  has(table: Table): boolean {
    return this.get(table) !== undefined;
  }

  #apply(step: Step): void {
    const guard = 'renamed' in step ? this.#guards.get(step.table) : step.guard;
    // Another table of that name is gone, or had another name before.
    this.#guards.delete(step.table);
    if (guard !== undefined) this.#guards.set('renamed' in step ? step.renamed : step.table, guard);
  }
}

/** Whether the script gives this table a guard, or takes it away. */
export function concernsGuardOf(table: Table, sql: string): boolean {
  const key = keyOf(table);
  return stepsOf(sql).some((step) => step.table === key && !('renamed' in step));
}

/** In the order of the script. */
function stepsOf(sql: string): Step[] {
  return [...sql.matchAll(STATEMENT)].flatMap(({ groups = {} }): Step[] => {
    const { guarded, column = '', policy = '', unguarded, dropped, altered, name, schema } = groups;
    if (guarded !== undefined) {
      return [{ table: keyOf(read(guarded)), guard: { column: column.replaceAll("''", "'"), policy } }];
    }
    if (unguarded !== undefined) return [{ table: keyOf(read(unguarded)), guard: undefined }];
    if (dropped !== undefined) {
      const tables = dropped.match(new RegExp(TABLE, 'g')) ?? [];
      return tables.map((table) => ({ table: keyOf(read(table)), guard: undefined }));
    }
    const before = read(altered as string);
    const after =
      name === undefined ? { ...before, schema: plain(schema as string) } : { ...before, name: plain(name) };
    return [{ table: keyOf(before), renamed: keyOf(after) }];
  });
}

function keyOf({ schema, name }: Table): string {
  return tableName({ name, schema: schema ?? DEFAULT_SCHEMA });
}

function read(table: string): Table {
  const names = (table.match(new RegExp(NAME, 'g')) ?? []).map(plain);
  return { name: names.at(-1) ?? '', schema: names.length > 1 ? names[0] : undefined };
}

const plain = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase());
