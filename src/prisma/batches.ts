import { lockTransaction } from './hooks.js';
import type { Engine, EngineQuery, PrismaInternals } from './internals.js';
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
    const results = await requestBatch.call(this, queries, options);
    const unsent = queries.slice(results.length);
    const failed = () => ({ name: nameOf(queries[results.length - 1] as EngineQuery), error: results.at(-1) });
    return [...results, ...unsent.map((query) => ofLock.skip({ name: nameOf(query), failed: failed() }))];
  };
}

/** As the caller knows it: the engine says `updateOne` for `update`. */
function nameOf({ modelName, action }: EngineQuery): string {
  const name = action.replace(/One$/, '');
  return modelName === undefined ? `$${name}` : `${nameOnClient(modelName)}.${name}`;
}
