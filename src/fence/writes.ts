import { InvalidOptionError, StaleTokenError } from '../base/errors.js';
import type { Operation } from './database.js';

/** The fence as the writes of one transaction carry it. */
export interface Fence {
  readonly key: string;
  readonly token: bigint;
  /** Name of the field that holds a row's fence. */
  readonly field: string;
  /** Whether an error of the database client says that no row matched. */
  isNoMatch(error: unknown): boolean;
}

type Args = Record<string, unknown>;
type Write = (operation: Operation, args: Args, fence: Fence) => Promise<unknown>;

/**
 * How each operation on a fenced model is sent: with `fence <= token` in its condition and the token in its data.
 * `<=`, because a holder may write a row twice; tokens are unique, so equality is the holder itself.
 */
const WRITES: Readonly<Record<string, Write>> = {
  create: (operation, args, fence) => operation.send(withToken(args, fence)),
  createMany: (operation, args, fence) => operation.send(withToken(args, fence)),
  createManyAndReturn: (operation, args, fence) => operation.send(withToken(args, fence)),
  update: (operation, args, fence) => one(operation, withToken(args, fence), args, fence),
  delete: (operation, args, fence) => one(operation, args, args, fence),
  updateMany: (operation, args, fence) => many(operation, withToken(args, fence), fence),
  updateManyAndReturn: (operation, args, fence) => many(operation, withToken(args, fence), fence),
  deleteMany: many,
  upsert,
};

/** Sends an operation on a fenced model in its conditional form. Reads go as they are. */
export function sendFenced(operation: Operation, fence: Fence): Promise<unknown> {
  const write = WRITES[operation.name];
  const args = (operation.args ?? {}) as Args;
  return write === undefined ? operation.send(operation.args) : write(operation, args, fence);
}

/** One statement by a unique condition. No match is told apart by one read: fresher, or not there. */
async function one(operation: Operation, args: Args, original: Args, fence: Fence): Promise<unknown> {
  try {
    return await operation.send({ ...args, where: notFresher(original['where'], fence) });
  } catch (error) {
    if (!fence.isNoMatch(error)) throw error;
    const select = { [fence.field]: true };
    const row = (await operation.sibling('findUnique', { where: original['where'], select })) as Args | null;
    if (row !== null && (row[fence.field] as bigint) > fence.token) throw stale(operation, fence);
    throw error;
  }
}

/** One statement for all rows that match, and a count of those that match and are fresher. */
async function many(operation: Operation, args: Args, fence: Fence): Promise<unknown> {
  if (args['limit'] !== undefined) {
    // Prisma puts the condition into a sub-select only: a row that became fresher meanwhile would be written.
    throw new InvalidOptionError(
      'limit',
      `cannot be made safe on the fenced model ${operation.model}: find the ids first, then write those rows.`,
    );
  }
  const where = args['where'];
  const result = await operation.send({ ...args, where: { AND: [where ?? {}, condition('lte', fence)] } });
  const fresher = await operation.sibling('count', { where: { AND: [where ?? {}, condition('gt', fence)] } });
  if (fresher !== 0) throw stale(operation, fence);
  return result;
}

/**
 * An update, and a create where there is no row. Prisma's own upsert loses the condition between its statements;
 * here a row that somebody inserts in between is refused by its unique key.
 */
async function upsert(operation: Operation, args: Args, fence: Fence): Promise<unknown> {
  const { where, create, update, ...shape } = args;
  const asUpdate: Operation = { ...operation, send: (sent) => operation.sibling('update', sent) };
  try {
    return await one(asUpdate, withToken({ ...shape, data: update }, fence), { where }, fence);
  } catch (error) {
    if (!fence.isNoMatch(error)) throw error;
    return await operation.sibling('create', withToken({ ...shape, data: create }, fence));
  }
}

/** The arguments with the token in their data, whatever the caller had put there. */
function withToken(args: Args, fence: Fence): Args {
  const put = (row: unknown) => ({ ...(row as Args), [fence.field]: fence.token });
  const data = args['data'];
  return { ...args, data: Array.isArray(data) ? data.map(put) : put(data) };
}

/** A unique condition keeps its unique fields at the top, so ours goes beside them. */
function notFresher(where: unknown, fence: Fence): Args {
  const { AND, ...unique } = (where ?? {}) as Args;
  const others = AND === undefined ? [] : Array.isArray(AND) ? AND : [AND];
  return { ...unique, AND: [...others, condition('lte', fence)] };
}

function condition(comparison: 'lte' | 'gt', fence: Fence): Args {
  return { [fence.field]: { [comparison]: fence.token } };
}

function stale(operation: Operation, fence: Fence): StaleTokenError {
  return new StaleTokenError(fence.key, fence.token, operation.model ?? '');
}
