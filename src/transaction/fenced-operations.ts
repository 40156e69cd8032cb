import { InsideTransactionError } from '../base/errors.js';
import type { Database, Operation, Query } from '../database/database.js';
import type { Fence } from '../fencing/fence.js';
import { fromGuard } from '../fencing/refusal.js';
import { sendFenced, WRITE_NAMES } from '../fencing/writes.js';
import type { Call } from './call.js';
import { transactionControl } from './raw-sql.js';

type Needed = Pick<Call<unknown, unknown>, 'fencing' | 'leases'> & {
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
    const { database, fencing } = this.#call;
    const { model, name, args } = operation;
    try {
      if (!WRITE_NAMES.has(name) || !fencing.concerns(model)) return await operation.send(args);
      // Store the promise: several operations may start at the same time, and one query of the guards is enough.
      this.#fence ??= fencing.guarded(this.#query, database.rescue).then((guarded) => this.#makeFence(guarded));
      return await sendFenced(operation, await this.#fence);
    } catch (error) {
      throw this.named(error);
    }
  }

  /** The typed error for a refusal of the guard. Any other error is returned unchanged. */
  named(error: unknown): unknown {
    const { database, leases, fencing } = this.#call;
    return fromGuard(error, database, { key: leases.key, token: this.#token, fencing });
  }

  #makeFence(guarded: ReadonlySet<string>): Fence {
    const { database, fencing, leases } = this.#call;
    return {
      key: leases.key,
      token: this.#token,
      field: fencing.field,
      models: fencing.models,
      isFenced: (model) => fencing.isFenced(model),
      concerns: (model) => fencing.concerns(model),
      isGuarded: (model) => guarded.has(model),
      isNoMatch: (error) => database.isNoMatch(error),
    };
  }
}

/** @throws InsideTransactionError for a statement that would end the transaction. */
export function refuseControl(sql: string, key: string): void {
  const control = transactionControl(sql);
  if (control === undefined) return;
  throw new InsideTransactionError(
    `Raw SQL under the lock must not end its transaction, and this begins with ${control}. ` +
      'Return from the function to commit, or throw to roll back.',
    { key },
  );
}
