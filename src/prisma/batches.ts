import type { SkippedOperation } from '../database/database.js';
import type { Engine, EngineQuery, PrismaInternals } from './internals.js';
import { lockTransaction } from './lock-transactions.js';
import { nameOnClient } from './models.js';

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
    const ofLock = kind === 'itx' ? lockTransaction(transaction?.id) : undefined;
    if (ofLock === undefined) return await requestBatch.call(this, queries, options);
    const results = await requestBatch.call(this, queries, options).catch((error: unknown) => {
      // It has sent none, and all reject with that error. A function that has caught it knows of one operation.
      const unsent = besideRefused(queries, error);
      if (unsent !== undefined) ofLock.skip(unsent);
      throw error;
    });
    const unsent = queries.slice(results.length);
    const failed = () => ({ name: nameOf(queries[results.length - 1] as EngineQuery), error: results.at(-1) });
    return [...results, ...unsent.map((query) => ofLock.skip({ name: nameOf(query), failed: failed() }))];
  };
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

/** As the caller knows it: the engine says `updateOne` for `update`. */
function nameOf({ modelName, action }: EngineQuery): string {
  const name = action.replace(/One$/, '');
  return modelName === undefined ? `$${name}` : `${nameOnClient(modelName)}.${name}`;
}
