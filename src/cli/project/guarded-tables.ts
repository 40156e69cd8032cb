import { identifier, type Table, tableName } from '../migrations/identifiers.js';

/** The guard that a table has after all migrations, or should have. */
export interface Guarded {
  readonly column: string;
  readonly policy: string;
  /** Whether the table with the guard is gone. One of the same name that was made since has none, and should have it. */
  readonly isLost: boolean;
}

/** What one script does with tables: the guards of those that it drops, and the columns of those that it creates. */
interface Script {
  readonly dropped: Map<string, Guarded>;
  readonly created: Map<string, string>;
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
    String.raw`CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?<created>${TABLE})\s*\((?<columns>[^;]*)`,
    String.raw`DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?<dropped>${TABLE}(?:\s*,\s*${TABLE})*)`,
    String.raw`ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?<altered>${TABLE})\s+(?:\*\s*)?(?:RENAME\s+TO\s+(?<name>${NAME})|SET\s+SCHEMA\s+(?<schema>${NAME}))`,
  ].join('|'),
  'gi',
);

/** The guards of tables, whether their names stand with the default schema or without one. */
export class GuardedTables {
  readonly #guards = new Map<string, Guarded>();

  /** Those after these scripts. A table that is made anew has lost its guard, as it does in the database, and its policy is kept. */
  static after(scripts: readonly string[]): GuardedTables {
    const tables = new GuardedTables();
    for (const sql of scripts) {
      const found = [...sql.matchAll(TRIGGER), ...masked(sql).matchAll(TABLES)];
      const script: Script = { dropped: new Map(), created: new Map() };
      for (const { groups = {} } of found.toSorted((a, b) => a.index - b.index)) tables.#apply(groups, script);
      tables.#inherit(script);
    }
    return tables;
  }

  get(table: Table): Guarded | undefined {
    return this.#guards.get(keyOf(table));
  }

  has(table: Table): boolean {
    return this.get(table) !== undefined;
  }

  #apply(groups: Groups, { dropped, created }: Script): void {
    const { guarded, column = '', policy = '', unguarded, altered, name, schema = '' } = groups;
    const { created: made, columns = '', dropped: gone } = groups;
    if (guarded !== undefined) {
      this.#guards.set(keyOf(read(guarded)), { column: column.replaceAll("''", "'"), policy, isLost: false });
    }
    if (unguarded !== undefined) this.#guards.delete(keyOf(read(unguarded)));
    if (made !== undefined) created.set(keyOf(read(made)), columns);
    for (const table of gone?.match(new RegExp(TABLE, 'g')) ?? []) {
      const guard = this.#lose(keyOf(read(table)), created);
      if (guard?.isLost === false) dropped.set(keyOf(read(table)), guard);
    }
    if (altered === undefined) return;
    const before = read(altered);
    const guard = this.#lose(keyOf(before), created);
    const after = name === undefined ? { ...before, schema: plain(schema) } : { ...before, name: plain(name) };
    if (guard !== undefined) this.#guards.set(keyOf(after), guard);
  }

  /** The table is gone, or has another name. */
  #lose(table: string, created: Script['created']): Guarded | undefined {
    created.delete(table);
    const guard = this.#guards.get(table);
    if (guard !== undefined) this.#guards.set(table, { ...guard, isLost: true });
    return guard;
  }

  /** Prisma writes a model's new name as DROP TABLE and CREATE TABLE: a new table with the fence should have the guard, too. */
  #inherit({ dropped, created }: Script): void {
    const gone = [...dropped].filter(([table]) => !created.has(table)).map(([, guard]) => guard);
    const [guard] = gone;
    if (guard === undefined || gone.some(({ column, policy }) => column !== guard.column || policy !== guard.policy))
      return;
    const column = `${identifier(guard.column)} BIGINT`;
    const heirs = [...created].filter(([table, columns]) => !this.#guards.has(table) && columns.includes(column));
    // Of more new tables than old ones it is not known which has taken the place of an old one.
    if (heirs.length > gone.length) return;
    for (const [table] of heirs) this.#guards.set(table, { ...guard, isLost: true });
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
