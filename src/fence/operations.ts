import { InsideTransactionError } from '../base/errors.js';
import type { Call } from './call.js';
import type { Database, Operation, Query } from './database.js';
import type { Fence } from './fence.js';
import { transactionControl } from './raw-sql.js';
import { fromGuard } from './refusal.js';
import { isWrite, sendFenced } from './writes.js';

type Needed = Pick<Call<unknown, unknown>, 'fencing' | 'grant'> & {
  readonly database: Pick<Database<unknown>, 'isNoMatch' | 'sqlState' | 'sqlDetail'>;
};

/** The caller's operations in one admitted transaction, in the form that the fence asks for. */
export class Operations {
  readonly #call: Needed;
  readonly #token: bigint;
  readonly #query: Query;
  #fence: Fence | undefined;

  constructor(call: Needed, token: bigint, query: Query) {
    this.#call = call;
    this.#token = token;
    this.#query = query;
  }

  /** @throws StaleTokenError, InvalidOptionError, or what the database client throws. */
  async send(operation: Operation): Promise<unknown> {
    const { fencing } = this.#call;
    const { model, name, args } = operation;
    try {
      if (model === undefined || !isWrite(name) || !fencing.concerns(model)) return await operation.send(args);
      this.#fence ??= this.#makeFence(await fencing.guarded(this.#query));
      return await sendFenced(operation, this.#fence);
    } catch (error) {
      throw this.named(error);
    }
  }

  /** What the guard refused, by its name; any other error as it is. */
  named(error: unknown): unknown {
    const { database, grant, fencing } = this.#call;
    return fromGuard(error, database, { key: grant.key, token: this.#token, fencing });
  }

  #makeFence(guarded: ReadonlySet<string>): Fence {
    const { database, fencing, grant } = this.#call;
    return {
      key: grant.key,
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

/** @throws InsideTransactionError for raw SQL that would end the transaction. */
export function refuseControl({ model, args }: Operation, key: string): void {
  const control = model === undefined ? transactionControl(textOf(args)) : undefined;
  if (control === undefined) return;
  throw new InsideTransactionError(
    `Raw SQL under the lock must not end its transaction, and this begins with ${control.split(/\s/)[0]}. ` +
      'Return from the function to commit, or throw to roll back.',
    { key },
  );
}

/** The text of a raw operation, as Prisma passes it: a tagged template's parts, or text and values. */
function textOf(args: unknown): string {
  if (Array.isArray(args)) return String(args[0]);
  const { strings, sql } = args as { strings?: readonly string[]; sql?: string };
  return strings ? strings.join('?') : (sql ?? '');
}
