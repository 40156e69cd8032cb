import { InvalidOptionError } from '../base/errors.js';
import type { Operation } from '../database/database.js';
import {
  type Args,
  CONNECTIVES,
  claim,
  claimed,
  type Fence,
  isCompound,
  isRecord,
  isValue,
  namesRow,
  notFresher,
  plain,
  refuseFresher,
  refuseNested,
  refuseOwnFence,
  withCondition,
  withToken,
} from './fence.js';

interface ConditionalWrite {
  readonly operation: Operation;
  readonly model: string;
  readonly args: Args;
  readonly fence: Fence;
}

/** How each write on a fenced model whose table has no guard is sent. */
const SEND: Readonly<Record<string, (write: ConditionalWrite) => Promise<unknown>>> = {
  create: insert,
  createMany: insert,
  createManyAndReturn: insert,
  update: writeOne,
  delete: writeOne,
  updateMany: writeMany,
  updateManyAndReturn: writeMany,
  deleteMany: writeMany,
  upsert,
};

/** The operations that write a model. */
export const WRITE_NAMES: ReadonlySet<string> = new Set(Object.keys(SEND));

/** Those that write no row that is there. */
const CREATES: ReadonlySet<string> = new Set(['create', 'createMany', 'createManyAndReturn']);

/** Those that Prisma refuses if no row matches their unique condition. */
const ONE_ROW: ReadonlySet<string> = new Set(['update', 'delete']);

/** Those that write whichever rows match. */
const MANY: ReadonlySet<string> = new Set(['updateMany', 'updateManyAndReturn', 'deleteMany']);

/** Whether a write is sent in another form than the caller's, or in several statements. */
export function isConditional({ model, name }: Operation, fence: Fence): boolean {
  return fence.unguarded.has(model) && WRITE_NAMES.has(name);
}

/**
 * Sends a write so that no row of a fenced model gets an older fence. If it fails, `explained` tells why.
 *
 * @throws StaleTokenError, InvalidOptionError
 */
export function sendFenced(operation: Operation, fence: Fence): Promise<unknown> {
  const { model, name, args } = operation;
  // Prisma refuses it. As no arguments at all, `deleteMany` would delete all rows.
  if (args === null) return operation.send(null);
  const write = { operation, model, args: (args ?? {}) as Args, fence };
  refuseUnsafe(write);
  const send = isConditional(operation, fence) ? SEND[name] : undefined;
  return send === undefined ? operation.send(args) : send(write);
}

/** @throws InvalidOptionError */
function refuseUnsafe({ operation, model, args, fence }: ConditionalWrite): void {
  const given = [args['data'], args['create'], args['update']];
  for (const data of given) refuseNested(model, data, fence);
  if (!isConditional(operation, fence)) return;
  if (fence.models.get(model)?.emulatesKeys && !CREATES.has(operation.name)) {
    throw new InvalidOptionError(
      `${model}.${operation.name}`,
      'cannot be made safe: with `relationMode = "prisma"`, Prisma looks the rows up and writes them by id, without the ' +
        `condition on their fence. Install the guard with \`npx fenced-lock add-fence ${model}\`.`,
    );
  }
  if (args['limit'] !== undefined && MANY.has(operation.name)) {
    // With a limit, Prisma puts the condition into a sub-select only, so a row that became fresher meanwhile would be
    // written.
    throw new InvalidOptionError(
      'limit',
      `cannot be made safe on the fenced model ${model} without the guard: find the ids first and write those rows, ` +
        `or install the guard with \`npx fenced-lock add-fence ${model}\`.`,
    );
  }
  for (const row of given.flat()) refuseOwnFence(model, row, fence);
}

function insert({ operation, args, fence }: ConditionalWrite): Promise<unknown> {
  // Without data, `create` makes a row of defaults.
  const { data = operation.name === 'create' ? {} : undefined } = args;
  const row = Array.isArray(data) ? data.map((each) => withToken(each, fence)) : withToken(data, fence);
  return operation.send({ ...args, data: row });
}

/** `update` and `delete`. If Prisma looks the row up before it writes it, it has to be claimed first. */
async function writeOne(write: ConditionalWrite): Promise<unknown> {
  const { operation, model, args, fence } = write;
  const { where } = args;
  const sent = operation.name === 'update' ? { ...args, data: withToken(args['data'], fence) } : args;
  // Prisma refuses it.
  if (!namesRow(model, where, fence))
    return await operation.send({ ...sent, where: withCondition(where, claimed(fence)) });
  if (!looksUp(write)) return await operation.send({ ...sent, where: withCondition(where, notFresher(fence)) });
  const row = await claim(operation, model, plain(model, where, fence), where, fence);
  // Use this condition even if no row was claimed: a fresher row may be inserted before the write.
  const one = row ? whereClaimed(model, where, row, fence) : withCondition(where, claimed(fence));
  return await operation.send({ ...sent, where: one });
}

/** Whether Prisma looks the row up, and then writes it by id: for relations in the condition or, of a `delete`, in the result. */
function looksUp({ operation, model, args, fence }: ConditionalWrite): boolean {
  const returnsMore = args['include'] !== undefined || args['select'] !== undefined;
  return (operation.name === 'delete' && returnsMore) || !isSimple(model, args['where'], fence);
}

/** Writes all matching rows by one statement, then looks for a matching row with a fresher fence. */
async function writeMany({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { where, data } = args;
  const sent = data === undefined ? args : { ...args, data: withToken(data, fence) };
  // An `undefined` that the caller wrote is passed on, because Prisma refuses it with `strictUndefinedChecks`: it would
  // mean all rows.
  const asked = where === undefined && 'where' in args ? { AND: where } : where;
  // With a relation in the condition: the write may change what it leads to, and a fresher row would not match any more.
  if (!isSimple(model, where, fence)) await refuseFresher(operation, model, where, where, fence);
  const result = await operation.send({ ...sent, where: withCondition(asked, notFresher(fence)) });
  await refuseFresher(operation, model, where, where, fence);
  return result;
}

/**
 * Updates the row, or creates it if there is none. Prisma's own upsert drops the condition between its statements. If
 * another transaction inserts the row in between, the unique key refuses the create.
 */
async function upsert({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { where, create, update, ...shape } = args;
  // Prisma refuses it. In the statements below it would be left out, or replaced.
  if (!isRecord(create) || !isRecord(update) || shape['data'] !== undefined)
    return await operation.send(operation.args);
  if (!namesRow(model, where, fence)) {
    return await operation.send({ ...shape, where: withCondition(where, claimed(fence)), data: update }, 'update');
  }
  const row = await claim(operation, model, plain(model, where, fence), where, fence);
  if (row === undefined) {
    return await operation.send({ ...shape, data: withToken(create, fence) }, 'create');
  }
  const data = withToken(update, fence);
  return await operation.send({ ...shape, where: whereClaimed(model, where, row, fence), data }, 'update');
}

/**
 * The error of a write. Where no row matched a unique condition, one read tells whether the row is fresher or missing. Not
 * part of the write, because each write would then take a promise more.
 */
export async function explained(operation: Operation, error: unknown, fence: Fence): Promise<unknown> {
  const { model, name } = operation;
  if (!ONE_ROW.has(name) || !fence.unguarded.has(model) || !fence.isNoMatch(error)) return error;
  const { where } = (operation.args ?? {}) as Args;
  if (!namesRow(model, where, fence)) return error;
  try {
    await refuseFresher(operation, model, plain(model, where, fence), where, fence);
  } catch (refusal) {
    return refusal;
  }
  return error;
}

/**
 * The condition that matches only the claimed row, by the values that the claim has left: it has changed the fence, Prisma
 * sets `@updatedAt` by it, and a trigger may change more. The caller's other conditions are left out, because the claim has
 * tested them and the row is locked.
 */
function whereClaimed(model: string, where: unknown, row: Args, fence: Fence): Args {
  const unique: Args = {};
  for (const [name, value] of Object.entries((where ?? {}) as Args)) {
    if (name in row && isValue(value)) unique[name] = row[name];
    if (value !== undefined && isCompound(model, name, fence)) {
      unique[name] = Object.fromEntries(Object.keys((value ?? {}) as Args).map((part) => [part, row[part]]));
    }
  }
  return withCondition(unique, claimed(fence));
}

/** Whether a condition uses columns of the model only. With relations in it, Prisma may look the row up first. */
function isSimple(model: string, where: unknown, fence: Fence): boolean {
  const relations = fence.models.get(model)?.relations;
  return Object.entries((where ?? {}) as Args).every(([name, value]) =>
    CONNECTIVES.has(name) ? [value].flat().every((part) => isSimple(model, part, fence)) : !relations?.has(name),
  );
}
