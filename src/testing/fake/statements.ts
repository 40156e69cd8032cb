import { InvalidOptionError, type LossReason } from '../../base/errors.js';
import type { LazyAbort } from '../../base/lazy-abort.js';
import { fencedTx, Unsent } from '../../prisma/tx.js';
import type { Plan } from './plan.js';

type Method = (this: unknown, ...args: unknown[]) => unknown;

const RAW = /^\$(execute|query)Raw/;
const WRITE = /^(create|update|upsert|delete)|^\$executeRaw/;

/** The lock that they run under. */
export interface StatementsOf {
  readonly key: string;
  readonly token: bigint;
  readonly ofHandle: boolean;
  lose(reason: LossReason): void;
}

/** The operations of one fake transaction: counted, and refused where the script or an abort says so. */
export class Statements extends Unsent {
  /** What was refused: it stays, also if the function swallows it. */
  refusal: { readonly error: unknown } | undefined;
  readonly #plan: Plan | undefined;
  readonly #abort: LazyAbort;
  readonly #lock: StatementsOf;
  readonly #models = new Map<string, object>();
  /** The names of those that have not settled. */
  readonly #running = new Map<object, string>();
  #begun = 0;
  #done = 0;

  constructor(plan: Plan | undefined, abort: LazyAbort, lock: StatementsOf) {
    super({ isModel: (name) => !name.startsWith('$'), isWrite: () => false }, lock.key);
    this.#plan = plan;
    this.#abort = abort;
    this.#lock = lock;
  }

  override get inFlight(): string | undefined {
    for (const name of this.#running.values()) return name;
    return undefined;
  }

  /** The client of the transaction, as the real one is: without what leaves it, and closed at its end. */
  on(client: object): { readonly tx: object; close(): void } {
    return fencedTx(client, this.#lock.key, this);
  }

  override watched(name: string | symbol, value: unknown): unknown {
    if (typeof name !== 'string') return value;
    if (typeof value === 'function' && RAW.test(name)) return this.#operation(name, value as Method, undefined);
    // A mock of a model may be a function that has the operations as its properties.
    if (name.startsWith('$') || value === null || !['object', 'function'].includes(typeof value)) return value;
    const known = this.#models.get(name) ?? this.#model(value as object);
    this.#models.set(name, known);
    return known;
  }

  #model(model: object): object {
    // A target of its own: the engine compares the value with the target's own property, which a frozen mock cannot change.
    return new Proxy(typeof model === 'function' ? () => {} : {}, {
      get: (_, name) => {
        const value: unknown = Reflect.get(model, name);
        const isOperation = typeof name === 'string' && typeof value === 'function' && name !== 'then';
        return isOperation ? this.#operation(name, value as Method, model) : value;
      },
      apply: (_, self, args) => Reflect.apply(model as Method, self, args),
      has: (_, name) => Reflect.has(model, name),
      set: (_, name, value) => Reflect.set(model, name, value),
    });
  }

  #operation(name: string, method: Method, model: object | undefined): Method {
    const statements = this;
    return function (...args) {
      const { key, token, ofHandle } = statements.#lock;
      if (statements.#abort.aborted) return Promise.reject(statements.#abort.reason);
      const { refused } = statements.#plan ?? {};
      const before = statements.#begun++;
      if (refused && WRITE.test(name) && before >= refused.after && statements.refusal === undefined) {
        statements.refusal = { error: refused.error(key, token, ofHandle) };
      }
      if (statements.refusal) return Promise.reject(statements.refusal.error);
      return statements.#counted(name, Reflect.apply(method, model ?? this, args));
    };
  }

  /** What the function awaits is settled before anything happens to it. */
  #counted(name: string, result: unknown): unknown {
    if (typeof (result as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') {
      this.#isDone();
      return result;
    }
    const running = {};
    this.#running.set(running, name);
    const isDone = () => {
      this.#running.delete(running);
      this.#isDone();
    };
    void Promise.resolve(result).then(isDone, isDone);
    return result;
  }

  #isDone(): void {
    this.#done++;
    const { lost } = this.#plan ?? {};
    if (lost && this.#done >= lost.after) this.#lock.lose(lost.reason);
  }
}

/** In place of a client that the test did not give. */
export function noClient(): object {
  return new Proxy(
    {},
    {
      get(_, name) {
        // Whoever awaits it, prints it or compares it asks for these.
        if (typeof name === 'symbol' || ['then', 'toJSON', 'asymmetricMatch'].includes(name)) return undefined;
        throw new InvalidOptionError(
          'prisma',
          `has no ${name}: give fakeLocks({ ${name}: … }) what the function works on.`,
        );
      },
    },
  );
}
