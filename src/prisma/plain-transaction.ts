/** The method of Prisma's client that runs the function of an interactive transaction. */
const RUNS_THE_FUNCTION = '_transactionWithCallback';
/** How many stack frames are searched. The default of 10 ends before the transaction in an ordinary service. */
const DEPTH = 200;

/**
 * Whether the caller runs inside the function of an interactive Prisma transaction. Read from the call stack, which V8
 * continues over each `await`. An async context would slow down every promise of every transaction, even without locks.
 * Misses callers behind something that is not awaited, such as an event or an observable.
 */
export function isInsideTransaction(): boolean {
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
  try {
    Error.stackTraceLimit = limit;
    if (prepare === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
    else Error.prepareStackTrace = prepare;
  } catch {
    // Nothing was changed in that case.
  }
}
