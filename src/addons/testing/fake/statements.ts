import type { LossReason } from '../../../base/errors.js';
import type { LazyAbort } from '../../../base/lazy-abort.js';
import { isWrite } from '../../../prisma/outside.js';
import { FencedTx, Operations, RAW, READS } from '../../../prisma/tx.js';
import { lazily, microtasks, OF_OPERATION } from './lazy.js';
import {
  absent,
  absentModel,
  isModel,
  type MockCall,
  missing,
  modelOf,
  standIn,
  watchedMethod,
  watchedMock,
  writes,
} from './mock.js';
import type { Plan } from './plan.js';

/** The lock that they run under. */
export interface StatementsOf {
  readonly key: string;
  readonly token: bigint;
  readonly ofHandle: boolean;
  lose(reason: LossReason): void;
}

/**
 * The operations of one fake transaction: counted, and refused where the script or an abort says so. Those that Prisma has
 * are sent when they are awaited. Other functions, such as those of an extension, are called at once, and count if they
 * return a promise.
 */
export class Statements extends Operations {
  /** What was refused: it stays, also if the function swallows it. */
  refusal: { readonly error: unknown } | undefined;
  readonly #client: object;
  readonly #plan: Plan | undefined;
  readonly #abort: LazyAbort;
  readonly #lock: StatementsOf;
  readonly #models = new Map<string, { readonly mock: unknown; readonly model: object }>();
  /** The names of those that were called at once and have not settled. */
  readonly #running = new Map<object, string>();
  #begun = 0;
  #done = 0;

  constructor(client: object, plan: Plan | undefined, abort: LazyAbort, lock: StatementsOf) {
    super(
      {
        models: { get: (name) => (name.startsWith('$') ? undefined : name) },
        writes: { has: (name) => isWrite(name, undefined) },
      },
      lock.key,
    );
    this.#client = client;
    this.#plan = plan;
    this.#abort = abort;
    this.#lock = lock;
  }

  override get inFlight(): string | undefined {
    for (const name of this.#running.values()) return name;
    return super.inFlight;
  }

  /** The client of the transaction, as the real one is: without what leaves it, and closed at its end. */
  open(): FencedTx {
    const client = this.#client;
    // Its own getters have the mock as `this`: they may use private fields.
    const mock = standIn(client, (name) => Reflect.get(client, name));
    return new FencedTx(mock, this);
  }

  override watched(_: object, name: string | symbol, value: unknown): unknown {
    if (typeof name !== 'string') return value;
    if (typeof value === 'function' && RAW.has(name)) {
      return watchedMethod(value, name, this.#client, (call) => this.#whenAwaited(name, undefined, call, true));
    }
    if (value === undefined && !Reflect.has(this.#client, name))
      return RAW.has(name) ? absent(name) : absentModel(name);
    if (this.names.models.get(name) === undefined || !isModel(value)) return value;
    const known = this.#models.get(name);
    if (known !== undefined && known.mock === value) return known.model;
    const model = watchedMock(value, name, (call) => this.#operation(name, call));
    this.#models.set(name, { mock: value, model });
    return model;
  }

  #operation(model: string, call: MockCall): unknown {
    const name = `${model}.${call.name}`;
    const writes = this.names.writes.has(call.name);
    return writes || READS.has(call.name)
      ? this.#whenAwaited(name, model, call, writes)
      : this.#atOnce(name, model, call);
  }

  /** An operation of Prisma. */
  #whenAwaited(name: string, model: string | undefined, of: MockCall, mustBeSent: boolean): unknown {
    let isSent = false;
    const start = () => {
      this.#admit(of, model);
      isSent = true;
      return of.call(...of.args);
    };
    const settled = async () => {
      if (!isSent) return;
      await microtasks(OF_OPERATION);
      this.#isDone();
    };
    const make = () => lazily(start, settled);
    return this.method(name, make, mustBeSent)();
  }

  #atOnce(name: string, model: string, of: MockCall): unknown {
    const result = of.call(...of.args);
    // Not an operation, as far as one can tell.
    if (typeof (result as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') return result;
    try {
      this.#admit(of, model);
    } catch (error) {
      if (result instanceof Promise) result.catch(() => {});
      return Promise.reject(error);
    }
    const running = {};
    this.#running.set(running, name);
    const isDone = () => {
      this.#running.delete(running);
      this.#isDone();
    };
    // What the function awaits is settled before anything happens to it.
    void Promise.resolve(result).then(isDone, isDone);
    return result;
  }

  /** @throws what an abort or the script says. */
  #admit(of: MockCall, model: string | undefined): void {
    const { key, token, ofHandle } = this.#lock;
    this.#abort.throwIfAborted();
    const { refused } = this.#plan ?? {};
    const before = this.#begun++;
    if (refused && this.refusal === undefined && before >= refused.after && writes(of)) {
      this.refusal = { error: refused.error(key, token, ofHandle, model && modelOf(model)) };
    }
    if (this.refusal) throw this.refusal.error;
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
        throw missing(name);
      },
    },
  );
}
