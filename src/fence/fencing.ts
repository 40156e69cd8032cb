import type { Model, Query, Row } from './database.js';
import { GUARDS } from './sql.js';

/** Which models are fenced, by which field, and which of them the database guards. */
export class Fencing {
  readonly field: string;
  readonly models: ReadonlyMap<string, Model>;
  readonly #fenced: ReadonlySet<string>;
  readonly #concerned: ReadonlySet<string>;
  #guarded: ReadonlySet<string> | undefined;

  constructor(field: string, fenced: ReadonlySet<string>, models: ReadonlyMap<string, Model>) {
    this.field = field;
    this.models = models;
    this.#fenced = fenced;
    const isFenced = (model: string) => fenced.has(model);
    this.#concerned = new Set([...models.keys()].filter((model) => leadsTo(model, models, isFenced)));
  }

  isFenced(model: string): boolean {
    return this.#fenced.has(model);
  }

  /** Whether a write of this model can reach rows of a fenced one. */
  concerns(model: string): boolean {
    return this.#concerned.has(model);
  }

  /**
   * Asked for once, in the first transaction that needs to know. A guard that is added later changes nothing until
   * the process starts again; before one is taken away, stop the processes that count on it.
   */
  async guarded(query: Query): Promise<ReadonlySet<string>> {
    this.#guarded ??= this.#match(await query(GUARDS, []));
    return this.#guarded;
  }

  /** The model of a table. */
  modelOf(schema: unknown, table: unknown): string | undefined {
    for (const [name, model] of this.models) if (model.schema === schema && model.table === table) return name;
    return undefined;
  }

  /** The columns of a row, by the names of their fields. */
  toFields(model: string | undefined, row: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const columns = [...(this.models.get(model ?? '')?.columns ?? [])];
    const fieldOf = (column: string) => columns.find(([, name]) => name === column)?.[0] ?? column;
    return Object.fromEntries(Object.entries(row).map(([column, value]) => [fieldOf(column), value]));
  }

  /** The table and the columns that a condition names one row by, if it is as plain as that. */
  rowOf(model: string, where: unknown): readonly [schema: string, table: string, key: string] | undefined {
    const { schema, table, columns } = this.models.get(model) ?? {};
    const fields = Object.entries((where ?? {}) as Record<string, unknown>);
    const isPlain = ([name, value]: [string, unknown]) =>
      columns?.has(name) && (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint');
    if (schema === undefined || table === undefined || fields.length === 0 || !fields.every(isPlain)) return undefined;
    const key = Object.fromEntries(fields.map(([name, value]) => [columns?.get(name), String(value)]));
    return [schema, table, JSON.stringify(key)];
  }

  #match(rows: readonly Row[]): ReadonlySet<string> {
    const guarded = new Set<string>();
    for (const { schema_name, table_name, fence_column } of rows) {
      const name = this.modelOf(schema_name, table_name);
      if (name !== undefined && this.models.get(name)?.columns.get(this.field) === fence_column) guarded.add(name);
    }
    return guarded;
  }
}

/** Whether rows of such a model can be reached from a row of this one. */
export function leadsTo(
  model: string,
  models: ReadonlyMap<string, Model>,
  isSuch: (model: string) => boolean,
): boolean {
  // A set grows while it is gone through, and so leads to everything that can be reached.
  const seen = new Set([model]);
  for (const name of seen) {
    if (isSuch(name)) return true;
    for (const relation of models.get(name)?.relations.values() ?? []) seen.add(relation.model);
  }
  return false;
}
