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
  /** The fenced models that no guard protects in the database, so that their writes need a condition. */
  readonly unguarded: ReadonlySet<string>;
  /** Whether the database client's error says that no row matched. */
  isNoMatch(error: unknown): boolean;
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
 * Combines two conditions. The given fields stay at the top level, and the other condition goes into AND: a unique condition
 * needs its unique fields there, and Prisma takes an empty OR for no row there, but inside AND for every row.
 */
export function withCondition(where: unknown, condition: Args): Args {
  if (where === undefined) return { AND: condition };
  // Prisma refuses it there. Its fields beside AND would be none, and that means every row.
  if (!isRecord(where)) return { AND: [where, condition] };
  if (!('AND' in where)) return { ...where, AND: condition };
  const { AND } = where;
  // With `strictUndefinedChecks`, Prisma refuses a field that is `undefined`.
  return { ...where, AND: [AND === undefined ? { AND } : AND, condition].flat() };
}

/** Whether it has fields: an object that is neither a list nor a value. */
export function isRecord(value: unknown): value is Args {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Adds the token to a row's data. What is no data stays as it is: Prisma refuses it. */
export function withToken(data: unknown, fence: Fence): unknown {
  return isRecord(data) ? { ...data, [fence.field]: fence.token } : data;
}

/** @throws InvalidOptionError if a row's data sets its fence. */
export function refuseOwnFence(model: string, data: unknown, fence: Fence): void {
  if ((data as Args | null | undefined)?.[fence.field] === undefined) return;
  throw new InvalidOptionError(
    `${model}.${fence.field}`,
    'is set by the lock and must not be given: leave it out of the data.',
  );
}

/**
 * Writes the token into a row, by one statement with the condition on its fence. After that, the transaction has the
 * row locked, and later statements of the database client cannot meet a fresher fence.
 *
 * @returns the row's fields by which the condition names it; `undefined` if there is no such row.
 * @throws StaleTokenError if the row's fence is fresher.
 */
export async function claim(
  operation: Operation,
  model: string,
  where: Args,
  shown: unknown,
  fence: Fence,
): Promise<Args | undefined> {
  const { columns } = fence.models.get(model) ?? {};
  const asked = Object.entries((shown ?? {}) as Args);
  const names = asked.flatMap(([name, key]) => (isCompound(model, name, fence) ? Object.keys(key ?? {}) : [name]));
  const named = names.filter((name) => columns?.has(name));
  const select = Object.fromEntries([...named, fence.field].map((name) => [name, true]));
  const args = { where: withCondition(where, notFresher(fence)), data: claimed(fence), select };
  const [row] = (await operation.run('updateManyAndReturn', args)) as readonly Args[];
  if (row === undefined) await refuseFresher(operation, model, where, shown, fence);
  return row;
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
    const unguarded = [other, model].find((end) => fence.unguarded.has(end));
    if (unguarded !== undefined) {
      throw new InvalidOptionError(
        `${model}.${name}`,
        `is a nested write that reaches ${unguarded}, which is fenced and has no guard. Install the guard with ` +
          `\`npx fenced-lock add-fence ${unguarded}\`, or write each model in an operation of its own, with its foreign key in place of \`connect\`.`,
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
  const fresher = withCondition(where, { [fence.field]: { gt: fence.token } });
  const select = { [fence.field]: true };
  const row = await firstOf(operation, { where: fresher, select });
  if (row === undefined) return;
  const { key, token, field, ofHandle } = fence;
  throw new StaleTokenError(key, token, model, { fence: row[field] as bigint, where: shown, ofHandle });
}

async function firstOf(operation: Operation, args: Args): Promise<Args | undefined> {
  try {
    return ((await operation.run('findFirst', args)) ?? undefined) as Args | undefined;
  } catch (error) {
    // Prisma sends a long list in several statements, and has an error without a code for more than one answer.
    if ((error as { readonly code?: unknown }).code !== undefined) throw error;
    const [row] = (await operation.run('findMany', args)) as readonly Args[];
    return row;
  }
}

/**
 * Converts a unique condition to an ordinary one, which has no compound keys: `{ a_b: { a, b } }` becomes `{ a, b }`. Beside
 * other conditions and not among them: they may be about the same fields.
 */
export function plain(model: string, unique: unknown, fence: Fence): Args {
  const where: Args = {};
  const keys: Args[] = [];
  for (const [name, value] of Object.entries((unique ?? {}) as Args)) {
    if (!isCompound(model, name, fence)) where[name] = value;
    else if (value !== undefined) keys.push(value as Args);
  }
  return keys.reduce(withCondition, where);
}

/** Whether a condition is a value, and neither a filter such as `{ gt: 5 }` nor left out. */
export function isValue(condition: unknown): boolean {
  return condition !== undefined && Object.getPrototypeOf(condition ?? 0) !== Object.prototype;
}

/**
 * Whether a unique condition can name one row. Prisma refuses any other, but our own statements, which come first, are
 * no unique ones: they would meet many rows.
 */
export function namesRow(model: string, unique: unknown, fence: Fence): boolean {
  const { columns } = fence.models.get(model) ?? {};
  const isGiven = (value: unknown) => value !== null && isValue(value);
  const asked = Object.entries((unique ?? {}) as Args).filter(([, value]) => value !== undefined);
  const keys = asked.filter(([name]) => isCompound(model, name, fence)).map(([, value]) => Object.values(value ?? {}));
  if (keys.length > 0) return keys.every((parts) => parts.length > 0 && parts.every(isGiven));
  return asked.some(([name, value]) => columns?.has(name) && isGiven(value));
}

/** The fields of a condition that combine other conditions on the same model. */
export const CONNECTIVES: ReadonlySet<string> = new Set(['AND', 'OR', 'NOT']);

/** Whether a name in a unique condition is that of a compound key. */
export function isCompound(model: string, name: string, fence: Pick<Fence, 'models'>): boolean {
  const { columns, relations } = fence.models.get(model) ?? {};
  return !columns?.has(name) && !relations?.has(name) && !CONNECTIVES.has(name);
}
