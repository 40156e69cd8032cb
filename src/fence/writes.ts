import { InvalidOptionError } from '../base/errors.js';
import type { Operation } from './database.js';
import {
  type Args,
  also,
  type Claim,
  claim,
  claimed,
  type Fence,
  isOurs,
  notFresher,
  plain,
  refuseFresher,
  withToken,
} from './fence.js';
import { isNested, planCreate, planUpdate } from './nested.js';

interface Write {
  readonly operation: Operation;
  readonly model: string;
  readonly args: Args;
  readonly fence: Fence;
}

/**
 * How each operation is sent on a model that is fenced, or leads to one that is. Where the database has no guard,
 * with `fence <= token` in its condition and the token in its data; where one statement does not do that, the rows
 * are claimed before.
 */
const WRITES: Readonly<Record<string, (write: Write) => Promise<unknown>>> = {
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
  const { model, name, args } = operation;
  const send = isWrite(name) ? WRITES[name] : undefined;
  if (send === undefined || model === undefined) return operation.send(args);
  return send({ operation, model, args: (args ?? {}) as Args, fence });
}

async function create({ operation, model, args, fence }: Write): Promise<unknown> {
  const { data, claims } = planCreate(model, args['data'], fence);
  await claimAll(operation, claims, fence);
  return await operation.send({ ...args, data });
}

async function insertMany({ operation, model, args, fence }: Write): Promise<unknown> {
  const { data } = args;
  const rows = Array.isArray(data) ? data.map((row) => withToken(model, row, fence)) : withToken(model, data, fence);
  return await operation.send({ ...args, data: rows });
}

async function update(write: Write): Promise<unknown> {
  const { operation, model, args, fence } = write;
  const { where, data } = args;
  if (isOurs(model, fence) && !isNested(model, data, fence) && isSimple(model, where, fence)) {
    return oneStatement(write, (sent) => operation.send({ ...sent, data: withToken(model, data, fence) }));
  }
  const parent = { where: plain(model, where, fence), claimed: isOurs(model, fence) };
  const plan = planUpdate(model, data, parent, fence);
  const held = await claimOne(write);
  await claimAll(operation, plan.claims, fence);
  return await operation.send({ ...args, where: held, data: plan.data });
}

async function remove(write: Write): Promise<unknown> {
  const { operation, model, args, fence } = write;
  if (!isOurs(model, fence)) return await operation.send(args);
  // With relations to return, the row is looked up first and deleted by its id.
  const direct = args['include'] === undefined && args['select'] === undefined;
  if (direct && isSimple(model, args['where'], fence)) return await oneStatement(write, (sent) => operation.send(sent));
  return await operation.send({ ...args, where: await claimOne(write) });
}

/** One statement for all rows that match, and a look for one that matches and is fresher. */
async function writeMany({ operation, model, args, fence }: Write): Promise<unknown> {
  const { where, data } = args;
  const sent = data === undefined ? args : { ...args, data: withToken(model, data, fence) };
  if (!isOurs(model, fence)) return await operation.send(sent);
  if (args['limit'] !== undefined) {
    // Prisma puts the condition into a sub-select only: a row that became fresher meanwhile would be written.
    throw new InvalidOptionError(
      'limit',
      `cannot be made safe on the fenced model ${model} without the guard: find the ids first and write those rows, ` +
        'or install the guard with `add-fence`.',
    );
  }
  const result = await operation.send({ ...sent, where: { AND: [where ?? {}, notFresher(fence)] } });
  await refuseFresher(operation, model, where, where, fence);
  return result;
}

/**
 * An update, or a create where there is no row. Prisma's own upsert loses the condition between its statements; here
 * a row that somebody inserts in between is refused by its unique key.
 */
async function upsert(write: Write): Promise<unknown> {
  const { operation, model, args, fence } = write;
  const { where, create: row, update: changes, ...shape } = args;
  const ours = isOurs(model, fence);
  const made = planCreate(model, row, fence);
  const changed = planUpdate(model, changes, { where: plain(model, where, fence), claimed: ours }, fence);
  if (!ours && made.claims.length === 0 && changed.claims.length === 0) {
    return await operation.send({ ...args, create: made.data, update: changed.data });
  }
  if (await isThere(write)) {
    await claimAll(operation, changed.claims, fence);
    const held = ours ? heldBy(where, fence) : where;
    return await operation.run(model, 'update', { ...shape, where: held, data: changed.data });
  }
  await claimAll(operation, made.claims, fence);
  return await operation.run(model, 'create', { ...shape, data: made.data });
}

async function isThere({ operation, model, args, fence }: Write): Promise<boolean> {
  const where = plain(model, args['where'], fence);
  if (isOurs(model, fence)) {
    return (await claim(operation, { model, where, shown: args['where'], one: true }, fence)) > 0;
  }
  return (await operation.run(model, 'count', { where })) !== 0;
}

/** One statement by a unique condition. That no row matched is told apart by one read: fresher, or not there. */
async function oneStatement({ operation, model, args, fence }: Write, send: (args: Args) => Promise<unknown>) {
  const { where } = args;
  try {
    return await send({ ...args, where: also(where, notFresher(fence)) });
  } catch (error) {
    if (fence.isNoMatch(error)) await refuseFresher(operation, model, plain(model, where, fence), where, fence);
    throw error;
  }
}

/** The condition to send an operation on one row with, which is claimed before if it is ours to claim. */
async function claimOne({ operation, model, args, fence }: Write): Promise<unknown> {
  const { where } = args;
  if (!isOurs(model, fence)) return where;
  await claim(operation, { model, where: plain(model, where, fence), shown: where, one: true }, fence);
  return heldBy(where, fence);
}

/** A fence that the caller asked for has become ours by the claim. */
function heldBy(where: unknown, fence: Fence): Args {
  const { [fence.field]: _, ...rest } = (where ?? {}) as Args;
  return also(rest, claimed(fence));
}

async function claimAll(operation: Operation, claims: readonly Claim[], fence: Fence): Promise<void> {
  for (const one of claims) await claim(operation, one, fence);
}

/** Whether a unique condition is about columns alone: with relations in it, Prisma may look the row up first. */
function isSimple(model: string, where: unknown, fence: Fence): boolean {
  const { columns } = fence.models.get(model) ?? {};
  return Object.keys(plain(model, where, fence)).every((name) => columns?.has(name));
}
