import { type Table, tableName } from '../migrations/identifiers.js';

/** The guard that a table has after all migrations. */
export interface Guarded {
  readonly column: string;
  readonly policy: string;
}

/** Tables without a schema are in this one, unless the URL of the database names another. */
const DEFAULT_SCHEMA = 'public';

const NAME = String.raw`(?:"(?:[^"]|"")*"|\w+)`;
const TABLE = String.raw`${NAME}(?:\s*\.\s*${NAME})?`;
const TRIGGER = new RegExp(
  [
    String.raw`CREATE\s+(?:OR\s+REPLACE\s+)?TRIGGER\s+"?zzz_fenced_lock_guard"?\s+BEFORE\s+[\w\s]+?\s+ON\s+(?<guarded>${TABLE})\s+` +
      String.raw`FOR\s+EACH\s+ROW\s+EXECUTE\s+FUNCTION\s+fenced_lock\.guard\(\s*'(?<column>(?:[^']|'')*)'\s*,\s*'(?<policy>\w+)'\s*\)`,
    String.raw`DROP\s+TRIGGER\s+(?:IF\s+EXISTS\s+)?"?zzz_fenced_lock_guard"?\s+ON\s+(?<unguarded>${TABLE})`,
  ].join('|'),
  'gi',
);
const TABLES = new RegExp(
  [
    String.raw`DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?<dropped>${TABLE}(?:\s*,\s*${TABLE})*)`,
    String.raw`ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?<altered>${TABLE})\s+(?:\*\s*)?(?:RENAME\s+TO\s+(?<name>${NAME})|SET\s+SCHEMA\s+(?<schema>${NAME}))`,
  ].join('|'),
  'gi',
);

/** The guards of tables, whether their names stand with the default schema or without one. */
export class GuardedTables {
  readonly #guards = new Map<string, Guarded>();

  /** Those after these scripts. A table that is made anew has lost its guard, as it does in the database. */
  static after(scripts: readonly string[]): GuardedTables {
    const tables = new GuardedTables();
    for (const sql of scripts) {
      const found = [...sql.matchAll(TRIGGER), ...masked(sql).matchAll(TABLES)];
      for (const { groups = {} } of found.toSorted((a, b) => a.index - b.index)) tables.#apply(groups);
    }
    return tables;
  }

  get(table: Table): Guarded | undefined {
    return this.#guards.get(keyOf(table));
  }

  has(table: Table): boolean {
    return this.get(table) !== undefined;
  }

  #apply({ guarded, column = '', policy = '', unguarded, dropped, altered, name, schema = '' }: Groups): void {
    if (guarded !== undefined) {
      this.#guards.set(keyOf(read(guarded)), { column: column.replaceAll("''", "'"), policy });
    }
    for (const table of (unguarded ?? dropped ?? '').match(new RegExp(TABLE, 'g')) ?? []) {
      this.#guards.delete(keyOf(read(table)));
    }
    if (altered === undefined) return;
    const before = read(altered);
    const guard = this.get(before);
    this.#guards.delete(keyOf(before));
    const after = name === undefined ? { ...before, schema: plain(schema) } : { ...before, name: plain(name) };
    if (guard !== undefined) this.#guards.set(keyOf(after), guard);
  }
}

type Groups = Readonly<Record<string, string | undefined>>;

/** Blanks in place of comments, texts and bodies of functions, which may name statements that are not executed here. */
function masked(sql: string): string {
  return sql.replace(/"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|(\$\w*\$)[\s\S]*?\1/g, (part) =>
    part.startsWith('"') ? part : ' '.repeat(part.length),
  );
}

function keyOf({ schema, name }: Table): string {
  return tableName({ name, schema: schema ?? DEFAULT_SCHEMA });
}

function read(table: string): Table {
  const names = (table.match(new RegExp(NAME, 'g')) ?? []).map(plain);
  return { name: names.at(-1) ?? '', schema: names.length > 1 ? names[0] : undefined };
}

const plain = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase());
