import { InvalidOptionError, StaleTokenError } from '../base/errors.js';
import type { Model, Operation } from '../database/database.js';

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

/** A row's data with the token in it. */
export function withToken(model: string, data: unknown, fence: Fence): Args {
  const row = data as Args;
  if (row?.[fence.field] !== undefined) {
    throw new InvalidOptionError(
      `${model}.${fence.field}`,
      'is set by the lock and must not be given: leave it out of the data.',
    );
  }
  return { ...row, [fence.field]: fence.token };
}

/**
 * Writes the token into a row, in one statement with its condition: from then on it is this transaction's, and whatever
 * the database client does to it cannot meet a fresher one.
 *
 * @returns whether there is such a row.
 * @throws StaleTokenError if it is fresher.
 */
export async function claim(
  operation: Operation,
  model: string,
  where: Args,
  shown: unknown,
  fence: Fence,
): Promise<boolean> {
  const args = { where: { AND: [where, notFresher(fence)] }, data: claimed(fence) };
  const { count } = (await operation.run(model, 'updateMany', args)) as { count: number };
  if (count === 0) await refuseFresher(operation, model, where, shown, fence);
  return count > 0;
}

/**
 * Refuses a write whose data leads to rows of a fenced model without a guard, or from one: Prisma would find those rows,
 * and write them, in statements of its own.
 *
 * @throws InvalidOptionError
 */
export function refuseNested(model: string, data: unknown, fence: Fence): void {
  if (data === null || typeof data !== 'object') return;
  if (Array.isArray(data)) {
    for (const row of data) refuseNested(model, row, fence);
    return;
  }
  const relations = fence.models.get(model)?.relations;
  for (const [name, value] of Object.entries(data as Args)) {
    const other = relations?.get(name);
    if (other === undefined || !value) continue;
    const unguarded = [other, model].find((end) => isOurs(end, fence));
    if (unguarded !== undefined) {
      throw new InvalidOptionError(
        `${model}.${name}`,
        `is a nested write that reaches ${unguarded}, which is fenced and has no guard. Install the guard with ` +
          `\`npx fenced-lock add-fence ${unguarded}\`, or write each model in an operation of its own, with its foreign key.`,
      );
    }
    for (const nested of nestedData(value as Args)) refuseNested(other, nested, fence);
  }
}

/** The data of the rows that the operations of a nested write make or change. */
function nestedData(operations: Args): unknown[] {
  return Object.entries(operations).flatMap(([name, value]) =>
    [value].flat().flatMap((given) => {
      const { data, create, update } = (given ?? {}) as Args;
      return name === 'create' || name === 'update' ? [given, data] : [data, create, update];
    }),
  );
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
