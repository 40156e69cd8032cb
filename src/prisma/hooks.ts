import { withCaller } from '../base/caller.js';
import { InsideTransactionError, quoted } from '../base/errors.js';
import { heldKey } from '../base/held-keys.js';
import { processWide } from '../base/process-wide.js';
import { writesBySql } from '../base/sql-text.js';
import type { Hook, SkippedOperation } from '../database/database.js';
import { WRITE_NAMES } from '../fencing/writes.js';
import { asPrismaReads, givenArguments } from './arguments.js';
import { hasOneSession } from './client.js';
import type { HookParams, PrismaInternals } from './internals.js';
import { nameOnClient } from './models.js';
import { RAW } from './tx.js';

// The two query extensions of this package. The outer one is part of the extension that the application applies, and refuses
// writes beside the `tx` of a lock. The innermost one is on the client that the transactions of locks begin on.

/** The transaction of a lock, while its function runs. */
interface LockTransaction {
  /** Where its writes are sent, if they need a condition on the fence. */
  readonly hook: Hook | undefined;
  /** Notes an operation that Prisma does not send, and makes its error. */
  skip(skipped: SkippedOperation): Error;
}

/** By their ids. Another copy of this package may have hooked the client. */
const transactions = processWide('transactions', () => new Map<unknown, LockTransaction | undefined>());

/**
 * Remembers the transaction of a lock until the returned function is called. `id`: `undefined` if Prisma does not tell it; then
 * any interactive transaction counts as one of a lock, so that no healthy write is refused.
 */
export function rememberTransaction(id: unknown, transaction: LockTransaction): () => void {
  transactions.set(id, id === undefined ? undefined : transaction);
  return () => {
    if (id !== undefined) transactions.delete(id);
  };
}

export function lockTransaction(id: unknown): LockTransaction | undefined {
  return transactions.get(id);
}

type QueryHook = (operation: HookParams) => Promise<unknown>;

const forEach = (names: Iterable<string | symbol>, hook: QueryHook) =>
  Object.fromEntries([...names].map((name) => [name, hook]));

/** A hook for what writes. Each operation that an extension names costs Prisma two promises more, so reads are left out. */
const ofWrites = (hook: QueryHook) => ({ $allModels: forEach(WRITE_NAMES, hook), ...forEach(RAW, hook) });

/**
 * The outer query extension. It passes writes on, but inside a lock's function it refuses one that is not in the
 * transaction of a lock. The connection cannot tell: Prisma sends the operations of one tick in the async context of the first,
 * which may be of another caller.
 */
export function detectOutsideWrites({ _engineConfig: { adapter } }: PrismaInternals) {
  const refuse: QueryHook = (operation) => passOn(operation, outsideWrite);
  const refuseWrites: QueryHook = (operation) =>
    isWrite(operation.operation, operation.args) ? refuse(operation) : operation.query(operation.args);
  // With one session, a read waits for the lock's transaction, which waits for the read.
  const isOfOneSession = adapter !== undefined && hasOneSession(adapter);
  return (isOfOneSession ? { $allOperations: refuse } : ofWrites(refuseWrites)) as unknown as Record<string, never>;
}

/** Whether an operation of a client writes: by its name, or by its raw SQL. `args`: as a query hook gets them. */
export function isWrite(operation: string, args: unknown): boolean {
  if (!operation.startsWith('$queryRaw')) return WRITE_NAMES.has(operation) || operation.startsWith('$executeRaw');
  // `[text, ...values]`, or Prisma's `Sql`.
  const { strings, sql } = (args ?? {}) as { strings?: readonly string[]; sql?: string };
  return writesBySql(Array.isArray(args) ? String(args[0]) : (strings?.join('?') ?? sql ?? ''));
}

/** A property that only a client with our innermost query extension has. */
export const INNERMOST = '$fencedLockInnermost';

/**
 * Makes the client that the transactions of locks begin on, which nobody else has. Its query extension is below all others of
 * the client, so it also sees operations that others repeat, and none of them changes the condition that a write gets here.
 *
 * - Where a table has no guard, the writes of a transaction pass its hook. All of them, also of other models and by raw SQL, so that
 *   no write overtakes another.
 * - An operation that is not in the transaction of a lock was called on `tx`, and an extension has taken it out: refused. A read
 *   there would miss what the function has written.
 *
 * One extended client serves all transactions: to extend one takes longer than a statement.
 *
 * @returns the client to begin on. `hooked`: whether the writes of the transaction need the hook.
 */
export function innermostOf(base: PrismaInternals): (hooked: boolean) => PrismaInternals {
  // Not by its `$on`, which Prisma takes from an extended client: applications give it back.
  const isExtended = base._extensions?.isEmpty() !== true;
  const query = isExtended ? { $allOperations: onOperation } : ofWrites(onOperation);
  let client: PrismaInternals | undefined;
  return (hooked) => {
    if (!hooked && !isExtended) return base;
    client ??= base.$extends({ name: 'fenced-lock transactions', client: { [INNERMOST]: true }, query });
    return client;
  };
}

function onOperation(operation: HookParams): Promise<unknown> {
  const { model, operation: name, query, __internalParams: params } = operation;
  const hook = lockTransaction(params?.transaction?.id)?.hook;
  if (hook === undefined || !(model === undefined || WRITE_NAMES.has(name))) return passOn(operation, takenOut);
  const args = givenArguments(operation);
  if (model === undefined) {
    const send = (sent: unknown) => query(sent);
    return hook.send({ model: '', name, args, send, run: send });
  }
  // Behind the extensions, which have seen the caller's operation already. `query` changes the parameters.
  const named = (other: string) => ({ ...params, action: other, clientMethod: `${nameOnClient(model)}.${other}` });
  return hook.send({
    model,
    name,
    args: asPrismaReads(args),
    send: (sent, other = name) => query(sent, named(other)),
    run: (other, sent) => query(sent, { ...named(other), dataPath: [], unpacker: undefined }),
  });
}

/**
 * Passes an operation on in the very call, if it is of a lock's transaction or not called inside a lock: if this awaited
 * anything, a read that is called behind a write would be sent first.
 */
function passOn(called: HookParams, refusal: typeof outsideWrite): Promise<unknown> {
  const { model, operation, query, __internalParams: params } = called;
  const given = givenArguments(called);
  const key = heldKey();
  // A version of Prisma that does not tell the transaction must not make a healthy write fail.
  if (key === undefined || params === undefined) return query(given);
  const { kind, id } = params.transaction ?? {};
  const isOfLock = kind === 'itx' && (transactions.has(id) || transactions.has(undefined));
  return isOfLock ? query(given) : refuse(refusal(key, operation, model));
}

async function refuse(refusal: InsideTransactionError): Promise<never> {
  // The stack leads to the caller only once it awaits this.
  await undefined;
  throw withCaller(refusal);
}

/** The refusal of a write that was called inside the function of the lock on `key`, but not on its `tx`. */
export function outsideWrite(key: string, operation: string, model: string | undefined): InsideTransactionError {
  return new InsideTransactionError(
    `\`${calledAs(operation, model)}\` was called on a client (such as \`prisma\`) inside the ` +
      `function of the lock ${quoted(key)}, and was not sent. It would not be part of the lock's transaction: a write would stay ` +
      'when that is rolled back, and could wait for rows that it has locked. Call it on the `tx` of the function. For a ' +
      'write that must stay in any case, use a client without this extension.',
    { key },
  );
}

function takenOut(key: string, operation: string, model: string | undefined): InsideTransactionError {
  return new InsideTransactionError(
    `\`${calledAs(operation, model)}\` was called on the \`tx\` of the lock ${quoted(key)}, and was not sent: an extension of the ` +
      'client has put it into another transaction. Take the lock on a client without that extension.',
    { key, page: 'guides/other-extensions.md#row-level-security' },
  );
}

/** As it stands in the code: the property of a model begins with a small letter. */
function calledAs(operation: string, model: string | undefined): string {
  return model === undefined ? operation : `${nameOnClient(model)}.${operation}`;
}
