/** The method of Prisma's client that runs the function of an interactive transaction. */
const RUNS_THE_FUNCTION = '_transactionWithCallback';
/** How many frames are looked through. The default of 10 ends before the transaction in an ordinary service. */
const DEPTH = 200;

/**
 * Whether the function of an interactive transaction of a Prisma client waits for the caller. Read from the call stack,
 * which V8 continues over each `await`: an async context would cost every promise of every transaction, also where
 * nobody locks. It misses a caller behind something that is not awaited, such as an event or an observable.
 */
export function standsInTransaction(): boolean {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const seen: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = DEPTH;
    // Names alone: a stack as text would also look up lines, and source maps.
    Error.prepareStackTrace = (_, frames) => frames.some((frame) => frame.getFunctionName() === RUNS_THE_FUNCTION);
    Error.captureStackTrace(seen, standsInTransaction);
    return seen.stack === true;
  } catch {
    // `--frozen-intrinsics` forbids it.
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
    // Nothing was changed then.
  }
}
