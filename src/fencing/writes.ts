import { InvalidOptionError } from '../base/errors.js';
import type { Operation } from '../database/database.js';
import {
  type Args,
  claim,
  claimed,
  type Fence,
  isCompound,
  isValue,
  namesRow,
  needsCondition,
  notFresher,
  plain,
  refuseFresher,
  refuseNested,
  withCondition,
  withToken,
} from './fence.js';

interface ConditionalWrite {
  readonly operation: Operation;
  readonly model: string;
  readonly args: Args;
  readonly fence: Fence;
}

/**
 * How each write is sent on a fenced model whose table has no guard: one statement, with `fence <= token` in its
 * condition and the token in its data. Nested writes that reach such a model are refused: Prisma looks up their rows by
 * separate statements, and another transaction may change the rows in between. The guard covers nested writes.
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

/** The operations that write a model. */
export const WRITE_NAMES: ReadonlySet<string> = new Set(Object.keys(WRITES));

/** Those that Prisma refuses if no row matches their unique condition. */
const ONE_ROW: ReadonlySet<string> = new Set(['update', 'delete']);

/** Whether a write is sent in another form than the caller's, or in several statements. */
export function isConditional({ model, name }: Operation, fence: Fence): boolean {
  return needsCondition(model, fence) && WRITE_NAMES.has(name);
}

/**
 * Sends a write so that no row of a fenced model gets an older fence. If it fails, `explained` tells why.
 *
 * @throws StaleTokenError
 */
export function sendFenced(operation: Operation, fence: Fence): Promise<unknown> {
  const { model, name } = operation;
  const args = (operation.args ?? {}) as Args;
  for (const data of [args['data'], args['create'], args['update']]) refuseNested(model, data, fence);
  const send = isConditional(operation, fence) ? WRITES[name] : undefined;
  return send === undefined ? operation.send(operation.args) : send({ operation, model, args, fence });
}

function create({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  return operation.send({ ...args, data: withToken(model, args['data'], fence) });
}

function insertMany({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { data } = args;
  const rows = Array.isArray(data) ? data.map((row) => withToken(model, row, fence)) : withToken(model, data, fence);
  return operation.send({ ...args, data: rows });
}

function update(write: ConditionalWrite): Promise<unknown> {
  const { operation, model, args, fence } = write;
  return oneRow(write, (where) => operation.send({ ...args, where, data: withToken(model, args['data'], fence) }));
}

function remove(write: ConditionalWrite): Promise<unknown> {
  const { operation, args } = write;
  // If relations are returned, Prisma looks up the row first and deletes it by id.
  const looksUp = args['include'] !== undefined || args['select'] !== undefined;
  return oneRow(write, (where) => operation.send({ ...args, where }), looksUp);
}

/** Writes all matching rows by one statement, then looks for a matching row with a fresher fence. */
async function writeMany({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { where, data } = args;
  if (args['limit'] !== undefined) {
    // With a limit, Prisma puts the condition into a sub-select only, so a row that became fresher meanwhile would be
    // written.
    throw new InvalidOptionError(
      'limit',
      `cannot be made safe on the fenced model ${model} without the guard: find the ids first and write those rows, ` +
        'or install the guard with `add-fence`.',
    );
  }
  const sent = data === undefined ? args : { ...args, data: withToken(model, data, fence) };
  // An `undefined` that the caller wrote is passed on, because Prisma refuses it with `strictUndefinedChecks`: it would
  // mean all rows.
  const asked = 'where' in args ? { AND: where } : {};
  const result = await operation.send({ ...sent, where: { AND: [asked, notFresher(fence)] } });
  await refuseFresher(operation, model, where, where, fence);
  return result;
}

/**
 * Updates the row, or creates it if there is none. Prisma's own upsert drops the condition between its statements. If
 * another transaction inserts the row in between, the unique key refuses the create.
 */
async function upsert({ operation, model, args, fence }: ConditionalWrite): Promise<unknown> {
  const { where, create, update, ...shape } = args;
  if (!namesRow(model, where, fence)) {
    return await operation.send({ ...shape, where: withCondition(where, claimed(fence)), data: update }, 'update');
  }
  const row = await claim(operation, model, plain(model, where, fence), where, fence);
  if (row === undefined) {
    return await operation.send({ ...shape, data: withToken(model, create, fence) }, 'create');
  }
  const data = withToken(model, update, fence);
  return await operation.send({ ...shape, where: whereClaimed(model, where, row, fence), data }, 'update');
}

/**
 * The error of a write. Where no row matched a unique condition, one read tells whether the row is fresher or missing. Not
 * part of the write, because each write would then take a promise more.
 */
export async function explained(operation: Operation, error: unknown, fence: Fence): Promise<unknown> {
  const { model, name } = operation;
  if (!ONE_ROW.has(name) || !needsCondition(model, fence) || !fence.isNoMatch(error)) return error;
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
 * Sends one statement with a unique condition. If Prisma looks the row up before it writes it, the row is claimed first.
 */
function oneRow(
  write: ConditionalWrite,
  send: (where: unknown) => Promise<unknown>,
  looksUp = false,
): Promise<unknown> {
  const { model, args, fence } = write;
  const { where } = args;
  if (!namesRow(model, where, fence)) return send(withCondition(where, claimed(fence)));
  if (looksUp || !isSimple(model, where, fence)) return claimedRow(write, send);
  return send(withCondition(where, notFresher(fence)));
}

async function claimedRow(
  { operation, model, args: { where }, fence }: ConditionalWrite,
  send: (where: unknown) => Promise<unknown>,
): Promise<unknown> {
  const row = await claim(operation, model, plain(model, where, fence), where, fence);
  // Use this condition even if no row was claimed: a fresher row may be inserted before the write.
  return await send(row ? whereClaimed(model, where, row, fence) : withCondition(where, claimed(fence)));
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

/** Whether a unique condition uses columns only. With relations in it, Prisma may look the row up first. */
function isSimple(model: string, where: unknown, fence: Fence): boolean {
  const { columns } = fence.models.get(model) ?? {};
  return Object.keys(where ?? {}).every((name) => columns?.has(name) || isCompound(model, name, fence));
}
