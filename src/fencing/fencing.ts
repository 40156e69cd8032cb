import { now } from '../base/clock.js';
import type { Model, Query, Row } from '../database/database.js';
import { GUARDS } from '../database/sql.js';
import { type Args, isCompound, isValue } from './fence.js';

/**
 * Age after which the list of guards is refreshed in the background, and age after which a transaction reads a new one
 * before its work; milliseconds.
 */
const FRESH_FOR = 30_000;
const GOOD_FOR = 60_000;

/** Which models are fenced, by which field, and which of them have a guard in the database. */
export class Fencing {
  readonly field: string;
  readonly models: ReadonlyMap<string, Model>;
  readonly #fenced: ReadonlySet<string>;
  /** The fenced models without a guard, at the time of the last answer. */
  #unguarded: ReadonlySet<string> | undefined;
  #queriedAt = Number.NEGATIVE_INFINITY;
  #isRefreshing = false;

  constructor(field: string, fenced: ReadonlySet<string>, models: ReadonlyMap<string, Model>) {
    this.field = field;
    this.models = models;
    this.#fenced = fenced;
  }

  /**
   * Whether the transaction's writes must pass the hook: there may be a fenced model without a guard, or the list of
   * guards is too old.
   */
  needsHook(aside: Query): boolean {
    if (this.#fenced.size === 0) return false;
    this.#refresh(aside);
    return this.#unguarded?.size !== 0 || now() - this.#queriedAt > GOOD_FOR;
  }

  /**
   * The fenced models without a guard; `undefined` if they have to be read. A guard may be dropped, so the list is used for a minute at
   * most. A busy client refreshes it over the rescue connection (`aside`), without delaying work.
   */
  unguarded(aside: Query): ReadonlySet<string> | undefined {
    this.#refresh(aside);
    return now() - this.#queriedAt > GOOD_FOR ? undefined : this.#unguarded;
  }

  /** Reads which fenced models have no guard. */
  async readUnguarded(query: Query): Promise<ReadonlySet<string>> {
    const askedAt = now();
    const guarded = this.#match(await query(GUARDS, []));
    const unguarded = new Set([...this.#fenced].filter((model) => !guarded.has(model)));
    // A later query may have been answered before this one.
    if (askedAt > this.#queriedAt) {
      this.#queriedAt = askedAt;
      this.#unguarded = unguarded;
    }
    return unguarded;
  }

  #refresh(aside: Query): void {
    const age = now() - this.#queriedAt;
    if (this.#isRefreshing || this.#unguarded === undefined || age <= FRESH_FOR || age > GOOD_FOR) return;
    this.#isRefreshing = true;
    // If this fails, the next transactions read the list themselves once it is too old.
    void this.readUnguarded(aside)
      .catch(() => {})
      .finally(() => {
        this.#isRefreshing = false;
      });
  }

  /** The model of a table. */
  modelOf(schema: unknown, table: unknown): string | undefined {
    for (const [name, model] of this.models) if (model.schema === schema && model.table === table) return name;
    return undefined;
  }

  /** Converts columns, with the JSON of their values, to fields. */
  toFields(name: string | undefined, row: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const model = this.models.get(name ?? '');
    if (model === undefined) return row;
    const columns = [...model.columns];
    const fieldOf = (column: string) => columns.find(([, name]) => name === column)?.[0] ?? column;
    return Object.fromEntries(
      Object.entries(row).map(([column, json]) => [fieldOf(column), model.valueOf(fieldOf(column), json)]),
    );
  }

  /**
   * The table, and the columns whose values name one row in a condition. What is no value, such as a filter beside them, is
   * left out. `undefined` if nothing is left, or if a value has no text that Postgres would read.
   */
  rowOf(model: string, where: unknown): readonly [schema: string, table: string, key: string] | undefined {
    const { schema, table, columns } = this.models.get(model) ?? {};
    const parts = Object.entries((where ?? {}) as Args).flatMap(([name, value]) =>
      isCompound(model, name, this) ? Object.entries((value ?? {}) as Args) : [[name, value] as const],
    );
    const key: Record<string, string> = {};
    for (const [name, value] of parts) {
      const column = columns?.get(name);
      if (column === undefined || value === null || !isValue(value)) continue;
      const text = textOf(value);
      if (text === undefined) return undefined;
      key[column] = text;
    }
    if (schema === undefined || table === undefined || Object.keys(key).length === 0) return undefined;
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

/** A value as Postgres reads it. */
function textOf(value: unknown): string | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return ['string', 'number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : undefined;
}
