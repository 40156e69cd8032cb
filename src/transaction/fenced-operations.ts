import type { Operation, Query } from '../database/database.js';
import type { Fence } from '../fencing/fence.js';
import { fromGuard } from '../fencing/refusal.js';
import { isConditional, sendFenced } from '../fencing/writes.js';
import type { CallContext } from './call.js';

/**
 * Sends the writes of one admitted transaction, where a fenced model has no guard. Those of such a model get a condition on
 * the fence.
 */
export class FencedOperations {
  readonly #call: CallContext;
  readonly #fence: Fence;
  /** Settles when the writes before have; `undefined` if they have. */
  #before: Promise<void> | undefined;

  private constructor(call: CallContext, fence: Fence) {
    this.#call = call;
    this.#fence = fence;
  }

  /**
   * Asks which tables have a guard, if that is not known: before the work, so that its first writes are sent as its later
   * ones. Resolves to `undefined` if all of them have one.
   */
  static async prepare(call: CallContext, token: bigint, query: Query): Promise<FencedOperations | undefined> {
    const { database, leases, parts, registered } = call;
    const { fencing } = parts;
    const guarded = await fencing.guarded(query, database.rescue);
    if (fencing.allIn(guarded)) return undefined;
    return new FencedOperations(call, {
      key: leases.key,
      token,
      ofHandle: registered !== undefined,
      field: fencing.field,
      models: fencing.models,
      isFenced: (model) => fencing.isFenced(model),
      isGuarded: (model) => guarded.has(model),
      isNoMatch: (error) => database.isNoMatch(error),
    });
  }

  /** Whether an operation is sent as it is, and none before it is still to be sent. */
  maySendAtOnce(operation: Operation): boolean {
    return this.#before === undefined && !isConditional(operation, this.#fence);
  }

  /**
   * Sends an operation in the turn of its call, so that a read that is called behind it and passes no hook does not overtake
   * it.
   *
   * @throws InvalidOptionError
   */
  sendAtOnce(operation: Operation): Promise<unknown> {
    try {
      return sendFenced(operation, this.#fence);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Sends the operations in the order of the calls, each when the one before it has settled: some become several
   * operations, and the next one may write the same row or refer to it.
   *
   * @throws StaleTokenError, InvalidOptionError, or what the database client throws.
   */
  async send(operation: Operation): Promise<unknown> {
    // Not by reactions to the promise of the one before: the stack of an error leads to the caller over `await` alone.
    const before = this.#before;
    let settle: () => void = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#before = settled;
    try {
      await before;
      return await sendFenced(operation, this.#fence);
    } catch (error) {
      const { database, parts } = this.#call;
      const { key, token, ofHandle } = this.#fence;
      throw fromGuard(error, database, { key, token, ofHandle, fencing: parts.fencing });
    } finally {
      if (this.#before === settled) this.#before = undefined;
      settle();
    }
  }
}
