import { identifier, type Table, tableName } from '../migrations/identifiers.js';

/** The guard that a table has after all migrations, or should have. */
export interface Guarded {
  readonly column: string;
  readonly policy: string;
  /** Whether the table with the guard is gone. One of the same name that was made since has none, and should have it. */
  readonly isLost: boolean;
}

/** What a statement does to a guard or to a table: `columns` are those of a new table, as its statement has them. */
type Step = { readonly table: string } & (
  | { readonly does: 'guard'; readonly guard: Guarded | undefined }
  | { readonly does: 'drop' }
  | { readonly does: 'rename'; readonly to: string }
  | { readonly does: 'create'; readonly columns: string }
);

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
    String.raw`CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?<created>${TABLE})\s*\((?<columns>[^;]*)`,
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
    for (const script of scripts) tables.#apply(stepsOf(script));
    return tables;
  }

  get(table: Table): Guarded | undefined {
    return this.#guards.get(keyOf(table));
  }

  has(table: Table): boolean {
    return this.get(table) !== undefined;
  }

  /** The steps of one script. */
  #apply(steps: readonly Step[]): void {
    const dropped = new Map<string, Guarded>();
    const created = new Map<string, string>();
    for (const step of steps) {
      const guard = this.#guards.get(step.table);
      if (step.does === 'guard') {
        if (step.guard === undefined) this.#guards.delete(step.table);
        else this.#guards.set(step.table, step.guard);
      } else if (step.does === 'create') {
        created.set(step.table, step.columns);
      } else {
        created.delete(step.table);
        if (guard === undefined) continue;
        this.#guards.set(step.table, { ...guard, isLost: true });
        if (step.does === 'rename') this.#guards.set(step.to, guard);
        else if (!guard.isLost) dropped.set(step.table, guard);
      }
    }
    // A table that is made anew under its own name has its guard already, as a lost one.
    const gone = [...dropped].filter(([table]) => !created.has(table)).map(([, guard]) => guard);
    this.#inherit(gone, created);
  }

  /** Prisma writes a model's new name as DROP TABLE and CREATE TABLE: a new table with the fence should have the guard, too. */
  #inherit(dropped: readonly Guarded[], created: ReadonlyMap<string, string>): void {
    const [guard] = dropped;
    if (guard === undefined || dropped.some((other) => !isSame(other, guard))) return;
    const heirs = [...created].filter(
      ([table, columns]) => !this.#guards.has(table) && hasColumn(columns, guard.column),
    );
    if (heirs.length > dropped.length) return;
    for (const [table] of heirs) this.#guards.set(table, { ...guard, isLost: true });
  }
}

const isSame = (one: Guarded, other: Guarded) => one.column === other.column && one.policy === other.policy;

/** Whether these columns of a new table have one of this name, as Prisma writes it. */
function hasColumn(columns: string, name: string): boolean {
  return columns.includes(`${identifier(name)} BIGINT`);
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
  if (guarded === undefined) return { table: keyOf(read(unguarded)), does: 'guard', guard: undefined };
  return {
    table: keyOf(read(guarded)),
    does: 'guard',
    guard: { column: column.replaceAll("''", "'"), policy, isLost: false },
  };
}

function ofTables({ created, columns = '', dropped, altered = '', name, schema = '' }: Groups): Step[] {
  if (created !== undefined) return [{ table: keyOf(read(created)), does: 'create', columns }];
  if (dropped !== undefined) {
    const tables = dropped.match(new RegExp(TABLE, 'g')) ?? [];
    return tables.map((table) => ({ table: keyOf(read(table)), does: 'drop' }));
  }
  const before = read(altered);
  const after = name === undefined ? { ...before, schema: plain(schema) } : { ...before, name: plain(name) };
  return [{ table: keyOf(before), does: 'rename', to: keyOf(after) }];
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
