import { type Table, tableName } from '../migrations/identifiers.js';

/** The guard that a table has after all migrations, or should have. */
export interface Guarded {
  readonly column: string;
  readonly policy: string;
  /** Whether the table with the guard is gone. One of the same name that was made since has none, and should have it. */
  readonly isLost: boolean;
}

/** What a statement does to the guard of a table: it gives it one, or takes it away, or drops the table, or gives it another name. */
type Step =
  | { readonly table: string; readonly guard: Guarded | undefined }
  | { readonly table: string; readonly isGone: true; readonly renamed?: string };

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
    if (!('isGone' in step)) {
      if (step.guard === undefined) this.#guards.delete(step.table);
      else this.#guards.set(step.table, step.guard);
      return;
    }
    const guard = this.#guards.get(step.table);
    if (guard === undefined) return;
    this.#guards.set(step.table, { ...guard, isLost: true });
    if (step.renamed !== undefined) this.#guards.set(step.renamed, guard);
  }
}

/** Whether the script gives this table a guard, or takes it away. */
export function concernsGuardOf(table: Table, sql: string): boolean {
  const key = keyOf(table);
  return stepsOf(sql).some((step) => step.table === key && !('isGone' in step));
}

/** In the order of the script. */
function stepsOf(sql: string): Step[] {
  const triggers = [...sql.matchAll(TRIGGER)].map(({ index, groups = {} }) => ({ index, steps: [ofTrigger(groups)] }));
  const tables = [...masked(sql).matchAll(TABLES)].map(({ index, groups = {} }) => ({
    index,
    steps: ofTables(groups),
  }));
  return [...triggers, ...tables].toSorted((a, b) => a.index - b.index).flatMap(({ steps }) => steps);
}

type Groups = Readonly<Record<string, string | undefined>>;

function ofTrigger({ guarded, column = '', policy = '', unguarded = '' }: Groups): Step {
  if (guarded === undefined) return { table: keyOf(read(unguarded)), guard: undefined };
  return { table: keyOf(read(guarded)), guard: { column: column.replaceAll("''", "'"), policy, isLost: false } };
}

function ofTables({ dropped, altered = '', name, schema = '' }: Groups): Step[] {
  if (dropped !== undefined) {
    const tables = dropped.match(new RegExp(TABLE, 'g')) ?? [];
    return tables.map((table) => ({ table: keyOf(read(table)), isGone: true }));
  }
  const before = read(altered);
  const after = name === undefined ? { ...before, schema: plain(schema) } : { ...before, name: plain(name) };
  return [{ table: keyOf(before), isGone: true, renamed: keyOf(after) }];
}

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
