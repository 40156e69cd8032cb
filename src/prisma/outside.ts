import { withCaller } from '../base/caller.js';
import { InsideTransactionError, quoted } from '../base/errors.js';
import { heldKey } from '../base/held-keys.js';
import { withoutNoise } from '../base/sql-text.js';
import { WRITE_NAMES } from '../fencing/writes.js';
import { givenArguments } from './arguments.js';
import { hasOneSession } from './client.js';
import type { HookParams, PrismaInternals } from './internals.js';
import { isOfLock } from './lock-transactions.js';
import { nameOnClient } from './models.js';
import { READS } from './tx.js';

/**
 * A query extension for writes. It passes them on, but inside a lock's function it refuses one that is not in the
 * transaction of a lock. The connection cannot tell: Prisma sends the operations of one tick in the async context of the first,
 * which may be of another caller.
 */
export function detectOutsideWrites({ _engineConfig: { adapter } }: PrismaInternals) {
  // With one session, a read waits for the lock's transaction, which waits for the read.
  if (adapter !== undefined && hasOneSession(adapter))
    return { $allOperations: notice } as unknown as Record<string, never>;
  const models = Object.fromEntries([...WRITE_NAMES].map((name) => [name, notice]));
  return {
    $allModels: models,
    $executeRaw: notice,
    $executeRawUnsafe: notice,
    $queryRaw: noticeRaw,
    $queryRawUnsafe: noticeRaw,
    $queryRawTyped: noticeRaw,
  } as unknown as Record<string, never>;
}

/**
 * Passes an operation on, on the client that only the transactions of locks begin on: what is not in such a transaction was called on
 * `tx`, and an extension has taken it out. A read there would miss what the function has written.
 */
export function refuseTakenOut(operation: HookParams): Promise<unknown> {
  return notice(operation, takenOut);
}

function noticeRaw(params: HookParams): Promise<unknown> {
  return isRawWrite(textOf(params.args)) ? notice(params) : params.query(params.args);
}

/** The text of raw SQL: of `[text, ...values]`, or of Prisma's `Sql`. */
function textOf(args: unknown): string {
  const { strings, sql } = (args ?? {}) as { strings?: readonly string[]; sql?: string };
  return Array.isArray(args) ? String(args[0]) : (strings?.join('?') ?? sql ?? '');
}

/** Whether an operation of a client writes: by its name, or by its raw SQL. `args`: as a query hook gets them. */
export function isWrite(operation: string, args: unknown): boolean {
  if (operation.startsWith('$queryRaw')) return isRawWrite(textOf(args));
  return WRITE_NAMES.has(operation) || operation.startsWith('$executeRaw');
}

const BEGINS = /^[\s(]*(?:insert|update|delete|merge|truncate|copy|call|do)\b/i;
const EXPLAINS = /^[\s(]*explain\s*(?:\(([^)]*)\)|((?:(?:analyze|analyse|verbose)\b\s*)+))/i;
const RUNS = /\banaly[zs]e\b(?!\s*(?:false|off|no|0)\b)/i;
const WITH = /^[\s(]*with\b/i;
/** In WITH, a part follows an opening parenthesis, and the main statement follows a closing one. */
const PART = /[()]\s*(?:insert\s+into|delete\s+from|merge\s+into|update\b.*?\bset)\b/is;

/**
 * Whether raw SQL writes: by its first word, under EXPLAIN ANALYZE, or in WITH. A function that writes is not
 * recognized.
 */
function isRawWrite(sql: string): boolean {
  return withoutNoise(sql).split(';').some(writes);
}

function writes(statement: string): boolean {
  const [explains, options, words] = EXPLAINS.exec(statement) ?? [];
  if (explains !== undefined) return RUNS.test(options ?? words ?? '') && writes(statement.slice(explains.length));
  return BEGINS.test(statement) || (WITH.test(statement) && PART.test(statement));
}

/** The operations of a model, by which a mock of one is known. */
export const OPERATIONS: readonly string[] = [...WRITE_NAMES, ...(READS as ReadonlySet<string>)];

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

/** Passes a write on in the very call: if this awaited anything, a read that is called behind the write would be sent first. */
function notice(write: HookParams, refusal = outsideWrite): Promise<unknown> {
  const { model, operation, query, __internalParams: params } = write;
  const given = givenArguments(write);
  const key = heldKey();
  // A version of Prisma that does not tell the transaction must not make a healthy write fail.
  if (key === undefined || params === undefined) return query(given);
  const { kind, id } = params.transaction ?? {};
  return isOfLock(kind, id) ? query(given) : refuse(refusal(key, operation, model));
}

async function refuse(refusal: InsideTransactionError): Promise<never> {
  // The stack leads to the caller only once it awaits this.
  await undefined;
  throw withCaller(refusal);
}
