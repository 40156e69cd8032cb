import type { Hook, Operation } from '../database/database.js';
import type { Fence } from '../fencing/fence.js';
import { fromGuard } from '../fencing/refusal.js';
import { explained, isConditional, sendFenced } from '../fencing/writes.js';
import type { CallContext } from './call.js';

/** The attempt whose writes are sent. */
interface Writer {
  readonly gate: { throwIfShut(): void };
  /** Called with each error of a write. */
  noteRefusal(error: unknown): void;
}

/**
 * Sends the writes of one admitted transaction, where a fenced model has no guard. Those of such a model get a condition on
 * the fence.
 */
export class FencedOperations implements Hook {
  readonly #call: CallContext;
  readonly #writer: Writer;
  readonly #fence: Fence;
  /** Settles when the writes before have; `undefined` if they have. */
  #before: Promise<void> | undefined;

  /** @param unguarded the fenced models without a guard. */
  constructor(call: CallContext, writer: Writer, token: bigint, unguarded: ReadonlySet<string>) {
    const { database, leases, parts, registered } = call;
    const { fencing } = parts;
    this.#call = call;
    this.#writer = writer;
    this.#fence = {
      key: leases.key,
      token,
      ofHandle: registered !== undefined,
      field: fencing.field,
      models: fencing.models,
      unguarded,
      isNoMatch: (error) => database.isNoMatch(error),
    };
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
      this.#writer.noteRefusal(error);
      return Promise.reject(error);
    }
  }

  async #sendInOrder(operation: Operation): Promise<unknown> {
    this.#writer.gate.throwIfShut();
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
      const { database, parts } = this.#call;
      const { key, token, ofHandle } = this.#fence;
      const cause = await explained(operation, error, this.#fence);
      const named = fromGuard(cause, database, { key, token, ofHandle, fencing: parts.fencing });
      this.#writer.noteRefusal(named);
      throw named;
    } finally {
      if (this.#before === settled) this.#before = undefined;
      settle();
    }
  }
}
