import type { Database, Operation, Query } from '../database/database.js';
import type { Fence } from '../fencing/fence.js';
import { fromGuard } from '../fencing/refusal.js';
import { sendFenced, WRITE_NAMES } from '../fencing/writes.js';
import type { Call } from './call.js';

type Needed = Pick<Call<unknown, unknown>, 'parts' | 'leases' | 'registered'> & {
  readonly database: Pick<Database<unknown>, 'isNoMatch' | 'rescue' | 'sqlState' | 'sqlDetail'>;
};

/**
 * Sends the operations of one admitted transaction. Writes of fenced models without a guard get a condition on the
 * fence.
 */
export class FencedOperations {
  readonly #call: Needed;
  readonly #token: bigint;
  readonly #query: Query;
  #fence: Promise<Fence> | undefined;

  constructor(call: Needed, token: bigint, query: Query) {
    this.#call = call;
    this.#token = token;
    this.#query = query;
  }

  /** @throws StaleTokenError, InvalidOptionError, or what the database client throws. */
  async send(operation: Operation): Promise<unknown> {
    const { database, leases, parts } = this.#call;
    const { fencing } = parts;
    const { model, name, args } = operation;
    try {
      if (!WRITE_NAMES.has(name) || !fencing.concerns(model)) return await operation.send(args);
      // Store the promise: several operations may start at the same time, and one query of the guards is enough.
      this.#fence ??= fencing.guarded(this.#query, database.rescue).then((guarded) => this.#makeFence(guarded));
      return await sendFenced(operation, await this.#fence);
    } catch (error) {
      throw fromGuard(error, database, { key: leases.key, token: this.#token, ofHandle: this.#ofHandle, fencing });
    }
  }

  get #ofHandle(): boolean {
    return this.#call.registered !== undefined;
  }

  #makeFence(guarded: ReadonlySet<string>): Fence {
    const { database, leases, parts } = this.#call;
    const { fencing } = parts;
    return {
      key: leases.key,
      token: this.#token,
      ofHandle: this.#ofHandle,
      field: fencing.field,
      models: fencing.models,
      isFenced: (model) => fencing.isFenced(model),
      concerns: (model) => fencing.concerns(model),
      isGuarded: (model) => guarded.has(model),
      isNoMatch: (error) => database.isNoMatch(error),
    };
  }
}
