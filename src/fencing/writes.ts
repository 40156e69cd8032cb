import { InvalidOptionError } from '../base/errors.js';
import type { Operation } from '../database/database.js';
import {
  type Args,
  also,
  claim,
  claimed,
  type Fence,
  isOurs,
  notFresher,
  plain,
  refuseFresher,
  refuseNested,
  withToken,
} from './fence.js';

interface ConditionalWrite {
  readonly operation: Operation;
  readonly model: string;
  readonly args: Args;
  readonly fence: Fence;
}

/**
 * How each write is sent on a fenced model whose table has no guard: with `fence <= token` in its condition and the token
 * in its data, in one statement. Nested writes that reach such a model are refused: Prisma finds their rows by statements
 * of its own, between which another transaction may change them. The guard holds them all.
 */
const WRITES: Readonly<Record<string, (write: ConditionalWrite) => Promise<unknown>>> = {
  create,
  createMany: insertMany,
  createManyAndReturn: insertMany,
  update,
  delete: remove,
  updateMany: writeMany,
  updateManyAndReturn: writeMany,
  deleteMany: writeMany,
  upsert,
};

export function isWrite(name: string): boolean {
  return Object.hasOwn(WRITES, name);
}

/** Sends a write in the form that keeps rows of fenced models from going back. @throws StaleTokenError */
export function sendFenced(operation: Operation, fence: Fence): Promise<unknown> {
  const { model, name } = operation;
  const args = (operation.args ?? {}) as Args;
  for (const data of [args['data'], args['create'], args['update']]) refuseNested(model, data, fence);
  const send = isOurs(model, fence) && isWrite(name) ? WRITES[name] : undefined;
  return send === undefined ? operation.send(operation.args) : send({ operation, model, args, fence });
}

async function create({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  return await operation.send({ ...args, data: withToken(model, args['data'], fence) });
}

async function insertMany({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { data } = args;
  const rows = Array.isArray(data) ? data.map((row) => withToken(model, row, fence)) : withToken(model, data, fence);
  return await operation.send({ ...args, data: rows });
}

async function update(write: ConditionalWrite): Promise<unknown> {
  const { operation, model, args, fence } = write;
  return await oneRow(write, (where) =>
    operation.send({ ...args, where, data: withToken(model, args['data'], fence) }),
  );
}

async function remove(write: ConditionalWrite): Promise<unknown> {
  const { operation, args } = write;
  // With relations to return, the row is looked up first and deleted by its id.
  const looksUp = args['include'] !== undefined || args['select'] !== undefined;
  return await oneRow(write, (where) => operation.send({ ...args, where }), looksUp);
}

/** One statement for all rows that match, and a look for one that matches and is fresher. */
async function writeMany({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { where, data } = args;
  if (args['limit'] !== undefined) {
    // Prisma puts the condition into a sub-select only: a row that became fresher meanwhile would be written.
    throw new InvalidOptionError(
      'limit',
      `cannot be made safe on the fenced model ${model} without the guard: find the ids first and write those rows, ` +
        'or install the guard with `add-fence`.',
    );
  }
  const sent = data === undefined ? args : { ...args, data: withToken(model, data, fence) };
  const result = await operation.send({ ...sent, where: { AND: [where ?? {}, notFresher(fence)] } });
  await refuseFresher(operation, model, where, where, fence);
  return result;
}

/**
 * An update, or a create where there is no row. Prisma's own upsert loses the condition between its statements; here
 * a row that somebody inserts in between is refused by its unique key.
 */
async function upsert({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { where, create: row, update: changes, ...shape } = args;
  if (!(await claim(operation, model, plain(model, where, fence), where, fence))) {
    return await operation.run(model, 'create', { ...shape, data: withToken(model, row, fence) });
  }
  const data = withToken(model, changes, fence);
  return await operation.run(model, 'update', { ...shape, where: heldBy(where, fence), data });
}

/**
 * One statement by a unique condition. That no row matched is told apart by one read: fresher, or not there. Where Prisma
 * looks the row up before it writes it, the row is claimed first.
 */
async function oneRow(
  write: ConditionalWrite,
  send: (where: unknown) => Promise<unknown>,
  looksUp = false,
): Promise<unknown> {
  const { operation, model, args, fence } = write;
  const { where } = args;
  if (looksUp || !isSimple(model, where, fence)) {
    await claim(operation, model, plain(model, where, fence), where, fence);
    // Also where it met no row: one may come before the write, and be fresher.
    return await send(heldBy(where, fence));
  }
  try {
    return await send(also(where, notFresher(fence)));
  } catch (error) {
    if (fence.isNoMatch(error)) await refuseFresher(operation, model, plain(model, where, fence), where, fence);
    throw error;
  }
}

/** The condition by which a claimed row is written, and no other one. */
function heldBy(where: unknown, fence: Fence): Args {
  // A fence that the caller asked for has become ours by the claim.
  const { [fence.field]: _, ...rest } = (where ?? {}) as Args;
  return also(rest, claimed(fence));
}

/** Whether a unique condition is about columns alone: with relations in it, Prisma may look the row up first. */
function isSimple(model: string, where: unknown, fence: Fence): boolean {
  const { columns } = fence.models.get(model) ?? {};
  return Object.keys(plain(model, where, fence)).every((name) => columns?.has(name));
}
