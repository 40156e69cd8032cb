import { InvalidOptionError, StaleTokenError } from '../base/errors.js';
import type { Model, Operation } from '../database/database.js';

export type Args = Record<string, unknown>;

/** The fence of one transaction, as its writes need it. */
export interface Fence {
  readonly key: string;
  readonly token: bigint;
  /** Whether the token is a handle's, which never rises. */
  readonly ofHandle: boolean;
  /** The name of the field that holds a row's fence. */
  readonly field: string;
  readonly models: ReadonlyMap<string, Model>;
  isFenced(model: string): boolean;
  /** Whether a write of this model can reach rows of a fenced model. */
  concerns(model: string): boolean;
  /** Whether the guard protects this model in the database, so that writes need no condition. */
  isGuarded(model: string): boolean;
  /** Whether the database client's error says that no row matched. */
  isNoMatch(error: unknown): boolean;
}

/** Whether writes of this model need a condition: it is fenced and has no guard. */
export function needsCondition(model: string, fence: Fence): boolean {
  return fence.isFenced(model) && !fence.isGuarded(model);
}

/**
 * The condition that the row's fence is not above this token. `<=` and not `<`, because a holder may write a row twice;
 * tokens are unique, so an equal fence is the holder's own.
 */
export function notFresher(fence: Fence): Args {
  return { [fence.field]: { lte: fence.token } };
}

/**
 * The condition that this transaction has written the row, which keeps it locked until the end. It is the only
 * condition that holds between the statements of a database client that looks rows up and then writes them by id: no
 * other transaction can make it true, or write the row afterwards.
 */
export function claimed(fence: Fence): Args {
  return { [fence.field]: fence.token };
}

/**
 * Combines two conditions. In a unique condition, the unique fields must stay at the top level, so the other condition
 * goes into AND.
 */
export function withCondition(where: unknown, condition: Args): Args {
  const { AND, ...rest } = (where ?? {}) as Args;
  const others = AND === undefined ? [] : Array.isArray(AND) ? AND : [AND];
  return { ...rest, AND: [...others, condition] };
}

/** Adds the token to a row's data. */
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
 * Writes the token into a row, by one statement with the condition on its fence. After that, the transaction has the
 * row locked, and later statements of the database client cannot meet a fresher fence.
 *
 * @returns whether the row exists.
 * @throws StaleTokenError if the row's fence is fresher.
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
 * Refuses a nested write from or to a fenced model without a guard: Prisma would look up and write those rows in
 * separate statements.
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
    const unguarded = [other, model].find((end) => needsCondition(end, fence));
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

/** The data of the rows that a nested write creates or updates. */
function nestedData(operations: Args): unknown[] {
  return Object.entries(operations).flatMap(([name, value]) =>
    [value].flat().flatMap((given) => {
      const { data, create, update } = (given ?? {}) as Args;
      return name === 'create' || name === 'update' ? [given, data] : [data, create, update];
    }),
  );
}

/** @throws StaleTokenError if a matching row has a fresher fence. */
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
  const { key, token, field, ofHandle } = fence;
  throw new StaleTokenError(key, token, model, { fence: row[field] as bigint, where: shown, ofHandle });
}

/**
 * Converts a unique condition to an ordinary one, which has no compound keys: `{ a_b: { a, b } }` becomes `{ a, b }`.
 */
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
