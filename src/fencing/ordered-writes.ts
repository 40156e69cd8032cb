import type { Hook, Operation } from '../database/database.js';
import type { Fence } from './fence.js';
import { explained, isConditional, sendFenced } from './writes.js';

interface WriteGate {
  throwIfShut(): void;
  /** Called with the error of each write that fails. Returns the error that the caller gets. */
  refused(error: unknown): unknown;
}

/**
 * Sends the writes of one transaction, where a fenced model has no guard. Those of such a model get a condition on the fence.
 */
export class OrderedWrites implements Hook {
  readonly #fence: Fence;
  readonly #gate: WriteGate;
  /** Settles when the writes before have; `undefined` if they have. */
  #before: Promise<void> | undefined;

  constructor(fence: Fence, gate: WriteGate) {
    this.#fence = fence;
    this.#gate = gate;
  }

  /**
   * Sends an operation at once, if it is sent as it is and none before it is still to be sent. Any other is sent when the one
   * before it has settled: some become several operations, and the next one may write the same row or refer to it.
   *
   * @throws StaleTokenError, InvalidOptionError, or what the database client throws.
   */
  send(operation: Operation): Promise<unknown> {
    // Not an async function: a read that is called behind this operation passes no hook, and must not overtake it.
    try {
      const mayGo = this.#before === undefined && !isConditional(operation, this.#fence);
      return mayGo ? sendFenced(operation, this.#fence) : this.#sendInOrder(operation);
    } catch (error) {
      return Promise.reject(this.#gate.refused(error));
    }
  }

  async #sendInOrder(operation: Operation): Promise<unknown> {
    this.#gate.throwIfShut();
    // Not by reactions to the promise of the one before: the stack of an error leads to the caller over `await` alone.
    const before = this.#before;
    let settle: () => void = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#before = settled;
    try {
      if (before !== undefined) await before;
      return await sendFenced(operation, this.#fence);
    } catch (error) {
      throw this.#gate.refused(await explained(operation, error, this.#fence));
    } finally {
      if (this.#before === settled) this.#before = undefined;
      settle();
    }
  }
}
