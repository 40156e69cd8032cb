import { isOfLock } from '../base/lock-transactions.js';
import { processWide } from '../base/process-wide.js';
import type { SkippedOperation } from '../database/database.js';
import type { Engine, EngineQuery, PrismaInternals } from './internals.js';
import { nameOnClient } from './schema.js';

/** The operation of a batch that failed, and kept the rest from being sent. */
type Failed = SkippedOperation['failed'];

/** By which another copy of this package, which may have wrapped the engine, tells the same. */
const FAILED = Symbol.for('prisma-extension-fenced-lock.failed-before');

function skipped(failed: Failed): Error {
  const error = new Error(`This operation was not sent, because \`${failed.name}\` had failed.`);
  return Object.defineProperty(error, FAILED, { value: failed });
}

/** What failed before an operation that Prisma has therefore not sent; `undefined` if `error` is another one. */
export function failedBefore(error: unknown): Failed | undefined {
  return (error as { [FAILED]?: Failed } | null | undefined)?.[FAILED];
}

/** Who is told of a refused batch, by the ids of the transactions. Another copy of this package may have wrapped the engine. */
const listeners = processWide('refused-batches', () => new Map<unknown, (skipped: SkippedOperation) => void>());

/** Calls `listener` when Prisma refuses a batch of the transaction as a whole, until the returned function is called. */
export function onRefusedBatch(id: unknown, listener: (skipped: SkippedOperation) => void): () => void {
  listeners.set(id, listener);
  return () => void listeners.delete(id);
}

/** A write, or raw SQL, that was refused together with an operation whose arguments are wrong. Reads lose nothing: they reject. */
function besideRefused(queries: readonly EngineQuery[], error: unknown): SkippedOperation | undefined {
  // Prisma names it in its own way: `createOneStock`, `createManyStockAndReturn`.
  const told = JSON.stringify((error as { readonly meta?: unknown }).meta ?? '');
  const named = ({ modelName, action }: EngineQuery) => action.replace(/OrThrow|AndReturn/, '') + modelName;
  const failed = queries.find((query) => told.includes(named(query))) ?? queries[0];
  const other = queries.find((query) => query !== failed && !/^(find|aggregate|groupBy)/.test(query.action));
  return failed && other && { name: nameOf(other), failed: { name: nameOf(failed), error } };
}

const WRAPPED = Symbol.for('prisma-extension-fenced-lock.whole-batches');

/**
 * Prisma makes a batch of the operations that are called on a transaction in one tick, stops at the first that fails, and
 * resolves the rest to `undefined`. In the transactions of locks the rest is rejected: a function that has caught the error
 * would take those operations for done. Found at the engine, because an extension may make a value of `undefined`.
 */
export function rejectSkipped({ _engine: engine }: PrismaInternals): void {
  if (engine?.requestBatch === undefined || Object.hasOwn(engine, WRAPPED)) return;
  Object.defineProperty(engine, WRAPPED, { value: true });
  const { requestBatch } = engine;
  engine.requestBatch = async function (this: Engine, queries, options) {
    const { kind, options: transaction } = options?.transaction ?? {};
    const results = await requestBatch.call(this, queries, options).catch((error: unknown) => {
      // It has sent none, and all reject with that error. A function that has caught it knows of one operation.
      const unsent = isOfLock(kind, transaction?.id) ? besideRefused(queries, error) : undefined;
      if (unsent !== undefined) listeners.get(transaction?.id)?.(unsent);
      throw error;
    });
    const last = queries[results.length - 1];
    if (last === undefined || results.length === queries.length) return results;
    if (!isOfLock(kind, transaction?.id)) return results;
    const failed = { name: nameOf(last), error: results.at(-1) };
    return [...results, ...queries.slice(results.length).map(() => skipped(failed))];
  };
}

/** As the caller knows it: the engine says `updateOne` for `update`. */
function nameOf({ modelName, action }: EngineQuery): string {
  const name = action.replace(/One$/, '');
  return modelName === undefined ? `$${name}` : `${nameOnClient(modelName)}.${name}`;
}
