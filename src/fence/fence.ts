import { InvalidOptionError, StaleTokenError } from '../base/errors.js';
import type { Model, Operation } from './database.js';

export type Args = Record<string, unknown>;

/** The fence as the writes of one transaction carry it. */
export interface Fence {
  readonly key: string;
  readonly token: bigint;
  /** Name of the field that holds a row's fence. */
  readonly field: string;
  readonly models: ReadonlyMap<string, Model>;
  isFenced(model: string): boolean;
  /** Whether a write of this model can reach rows of a fenced one. */
  concerns(model: string): boolean;
  /** Whether the database itself keeps this model's rows from going back, so that nothing is to be added here. */
  isGuarded(model: string): boolean;
  /** Whether an error of the database client says that no row matched. */
  isNoMatch(error: unknown): boolean;
}

/** Whether writes of this model have to be made conditional here. */
export function isOurs(model: string, fence: Fence): boolean {
  return fence.isFenced(model) && !fence.isGuarded(model);
}

/** Not above our token. `<=`, because a holder may write a row twice; tokens are unique, so equal is the holder. */
export function notFresher(fence: Fence): Args {
  return { [fence.field]: { lte: fence.token } };
}

/**
 * Written by this very transaction, and so locked to its end. Where the database client looks rows up and then
 * writes them by their ids, only this condition keeps: no other transaction can make it true of a row, or write
 * the row afterwards.
 */
export function claimed(fence: Fence): Args {
  return { [fence.field]: fence.token };
}

/** A condition and one more. A unique condition keeps its unique fields at the top, so the other goes beside them. */
export function also(where: unknown, condition: Args): Args {
  const { AND, ...rest } = (where ?? {}) as Args;
  const others = AND === undefined ? [] : Array.isArray(AND) ? AND : [AND];
  return { ...rest, AND: [...others, condition] };
}

/** A row's data with the token in it; with the guard the database puts it there. */
export function withToken(model: string, data: unknown, fence: Fence): Args {
  const row = { ...(data as Args) };
  if (!fence.isFenced(model)) return row;
  if (row[fence.field] !== undefined) {
    throw new InvalidOptionError(
      `${model}.${fence.field}`,
      'is set by the lock and must not be given: leave it out of the data.',
    );
  }
  return fence.isGuarded(model) ? row : { ...row, [fence.field]: fence.token };
}

/** Existing rows of a fenced model that a write is going to write. */
export interface Claim {
  readonly model: string;
  readonly where: Args;
  /** What the caller knows these rows by. */
  readonly shown: unknown;
  /** Whether it matches one row at most. */
  readonly one: boolean;
  /** Hears how many there were. */
  readonly settle?: (count: number) => void;
}

/**
 * Writes the token into rows, in one statement with its condition: from then on they are this transaction's, and
 * whatever the database client does to them cannot meet a fresher one.
 *
 * @returns how many there are.
 * @throws StaleTokenError if one that matches is fresher.
 */
export async function claim(
  operation: Operation,
  { model, where, shown, one, settle }: Claim,
  fence: Fence,
): Promise<number> {
  const args = { where: { AND: [where, notFresher(fence)] }, data: claimed(fence) };
  const { count } = (await operation.run(model, 'updateMany', args)) as { count: number };
  if (!one || count === 0) await refuseFresher(operation, model, where, shown, fence);
  settle?.(count);
  return count;
}

/** @throws StaleTokenError if a row that matches is fresher. */
export async function refuseFresher(
  operation: Operation,
  model: string,
  where: unknown,
  shown: unknown,
  fence: Fence,
): Promise<void> {
  const fresher = { AND: [where ?? {}, { [fence.field]: { gt: fence.token } }] };
  const select = { [fence.field]: true };
  const row = (await operation.run(model, 'findFirst', { where: fresher, select })) as Args | null;
  if (row === null) return;
  throw new StaleTokenError(fence.key, fence.token, model, { fence: row[fence.field] as bigint, where: shown });
}

/** A unique condition as a plain one, which knows no compound keys: `{ a_b: { a, b } }` becomes `{ a, b }`. */
export function plain(model: string, unique: unknown, fence: Fence): Args {
  const { columns, relations } = fence.models.get(model) ?? {};
  const where: Args = {};
  for (const [name, value] of Object.entries((unique ?? {}) as Args)) {
    const isField = columns?.has(name) || relations?.has(name) || name === 'AND' || name === 'OR' || name === 'NOT';
    if (isField) where[name] = value;
    else Object.assign(where, value);
  }
  return where;
}
