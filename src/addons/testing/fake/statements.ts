import type { Lock } from '../../../call/lock.js';
import { isWrite } from '../../../prisma/outside.js';
import { FencedTx, READS } from '../../../prisma/tx.js';
import { microtasks, OF_OPERATION } from './clock.js';
import type { FakeConnection, FakeTransaction } from './database.js';
import { lazily } from './lazy.js';
import { type MockCall, modelOf, standIn, watchedMock, writes } from './mock.js';
import type { Plan } from './plan.js';

/** What the script says of a transaction, and the lock that it runs under. */
interface Scripted {
  readonly plan: Plan;
  readonly lock: Pick<Lock, 'token'>;
  readonly named: string;
  readonly ofHandle: boolean;
  /** The lease is lost. */
  lose(): void;
}

/**
 * The operations of one fake transaction: counted, and refused where the script or the gate of the transaction says so.
 * Those that Prisma has are sent when they are awaited. Other functions, such as those of an extension, are called at once,
 * and count if they return a promise.
 */
export class Statements extends FencedTx {
  readonly #connection: FakeConnection;
  readonly #property: ReturnType<typeof watchedMock>;
  /** The names of those that were called at once and have not settled. */
  readonly #running = new Map<object, string>();
  #scripted: Scripted | undefined;
  /** Whether the script has refused a write: that stays, also if the function swallows it. */
  #refusal: unknown;
  #begun = 0;
  #done = 0;

  constructor(client: object, key: string, connection: FakeConnection) {
    // Its own getters have the mock as `this`: they may use private fields.
    super(
      standIn(client, (name) => Reflect.get(client, name)),
      key,
      new Set(),
    );
    this.#connection = connection;
    this.#property = watchedMock(client, (call) => this.#called(call));
  }

  /** The client of the transaction, as the real one is: without what leaves it, and closed at its end. */
  open(): FakeTransaction {
    return {
      tx: this.proxy,
      close: () => {
        this.isClosed = true;
      },
    };
  }

  override get inFlight(): string | undefined {
    for (const name of this.#running.values()) return name;
    return super.inFlight;
  }

  override watched(name: string | symbol, value: unknown): unknown {
    return this.#property(name, value);
  }

  follow(scripted: Scripted): void {
    this.#scripted = scripted;
  }

  /** Called when the function has returned, and before COMMIT. @throws what the script says */
  async end(): Promise<void> {
    const { plan, lose } = this.#scripted ?? {};
    if (plan?.lost) lose?.();
    // It wrote nothing that could have been refused.
    if (plan?.refused && this.#refusal === undefined) throw this.#refuse();
    if (plan?.conflict) throw await plan.conflict.error;
    if (plan?.rolledBack) throw plan.rolledBack(this.#scripted?.named ?? '');
    this.#connection.losesAnswer = plan?.unanswered === true;
  }

  #called(call: MockCall): unknown {
    const name = call.model === undefined ? call.name : `${call.model}.${call.name}`;
    const mustBeSent = call.model === undefined || isWrite(call.name, undefined);
    return mustBeSent || READS.has(call.name) ? this.#whenAwaited(name, call, mustBeSent) : this.#atOnce(name, call);
  }

  /** An operation of Prisma. */
  #whenAwaited(name: string, of: MockCall, mustBeSent: boolean): unknown {
    let isSent = false;
    const start = () => {
      this.#admit(of);
      isSent = true;
      return of.call(...of.args);
    };
    const settled = async () => {
      if (!isSent) return;
      await microtasks(OF_OPERATION);
      this.#isDone();
    };
    return this.method(name, () => lazily(start, settled), mustBeSent)();
  }

  #atOnce(name: string, of: MockCall): unknown {
    const result = of.call(...of.args);
    // Not an operation, as far as one can tell.
    if (typeof (result as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') return result;
    try {
      this.#admit(of);
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

  /** @throws what the gate or the script says. */
  #admit(of: MockCall): void {
    const { conductor } = this.#connection;
    conductor?.gate.enter('');
    const { refused } = this.#scripted?.plan ?? {};
    const isRefused = refused !== undefined && this.#begun++ >= refused.after && writes(of);
    if (isRefused) this.#refuse(of.model && modelOf(of.model));
    // As a statement that has failed.
    if (this.#refusal !== undefined) throw conductor?.failed(this.#refusal);
    conductor?.gate.leave();
  }

  #refuse(model?: string): unknown {
    const { plan, named = '', lock, ofHandle = false } = this.#scripted ?? {};
    this.#refusal ??= plan?.refused?.error(named, lock?.token ?? 0n, ofHandle, model);
    return this.#refusal;
  }

  #isDone(): void {
    this.#done++;
    const { plan, lose } = this.#scripted ?? {};
    if (plan?.lost && this.#done >= plan.lost.after) lose?.();
  }
}
