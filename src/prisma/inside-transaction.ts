import { InsideTransactionError } from '../base/errors.js';

/** The method of Prisma's client that runs the function of an interactive transaction. */
export const RUNS_THE_FUNCTION = '_transactionWithCallback';
/** How many stack frames are searched. The default of 10 ends before the transaction in an ordinary service. */
const DEPTH = 200;

/**
 * Whether the caller runs inside the function of an interactive Prisma transaction. Read from the call stack, which V8
 * continues over each `await`. An async context would slow down every promise of every transaction, even without locks.
 * Misses callers behind something that is not awaited, such as an event or an observable.
 */
function isInsideTransaction(): boolean {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const seen: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = DEPTH;
    // Function names only: formatting the stack would also look up lines and source maps.
    Error.prepareStackTrace = (_, frames) => frames.some((frame) => frame.getFunctionName() === RUNS_THE_FUNCTION);
    Error.captureStackTrace(seen, isInsideTransaction);
    return seen.stack === true;
  } catch {
    // `--frozen-intrinsics` forbids these assignments.
    return false;
  } finally {
    restore(stackTraceLimit, prepareStackTrace);
  }
}

function restore(limit: number, prepare: typeof Error.prepareStackTrace): void {
  // Not by assignments: where `--frozen-intrinsics` forbids them, nothing was changed.
  Reflect.set(Error, 'stackTraceLimit', limit);
  if (prepare === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
  else Reflect.set(Error, 'prepareStackTrace', prepare);
}

/** Refuses a call on the client of a transaction. @throws InsideTransactionError */
export function refuseTransactionClient(method: string, key: string | undefined): never {
  throw insideTransaction(method, 'on the client of a transaction', key);
}

/** Refuses a call inside the function of a plain `$transaction`. @throws InsideTransactionError */
export function refuseInsideTransaction(method: string, key: string | undefined): void {
  if (isInsideTransaction()) throw insideTransaction(method, 'inside the function of a `$transaction`', key);
}

/** Refuses a call that would wait for the lock that this context holds. @throws InsideTransactionError */
export function refuseInsideLock(what: string, key: string | undefined): void {
  if (key === undefined) return;
  throw new InsideTransactionError(`${what} inside the function of a lock would wait for its end. Do it outside.`, {
    key,
  });
}

function insideTransaction(method: string, where: string, key: string | undefined): InsideTransactionError {
  return new InsideTransactionError(
    `\`${method}\` was called ${where}, which would wait for the lock while it holds a connection and rows. Call it ` +
      'outside of any transaction, on your client (`prisma`), not on `tx`, and work with the `tx` that its function gets.',
    { key },
  );
}
