import { Phase } from './channels.js';
import { now } from './clock.js';
import { codeOf } from './errors.js';
import type { LockMessage, LockOutcome, LockVia, TransactionMessage } from './messages.js';

/** What Postgres has said to a transaction. */
interface Admitted {
  readonly attempt: string;
  readonly tokens: readonly bigint[];
  readonly token: bigint;
  readonly turn: bigint;
  readonly pid: number;
  readonly xid: string;
}

/** The holders in whose names a call has its leases, and how it got each lease. */
interface Leases {
  readonly keys: readonly string[];
  readonly holders: readonly string[];
  readonly via: readonly LockVia[];
}

/** What is published of one call and of its attempts at a transaction. Nothing here throws, and nothing is waited for. */
export class CallTrace {
  readonly #whole: Phase<'fenced-lock:lock'>;
  #wait: Phase<'fenced-lock:wait'> | undefined;
  #hold: Phase<'fenced-lock:hold'> | undefined;
  #work: Phase<'fenced-lock:work'> | undefined;
  #transaction: Phase<'fenced-lock:transaction'> | undefined;
  #admission: Phase<'fenced-lock:admission'> | undefined;
  #commit: Phase<'fenced-lock:commit'> | undefined;
  #admittedAt = 0;
  #begun = false;
  #outcome: LockOutcome = 'not-admitted';

  constructor(message: LockMessage) {
    this.#whole = new Phase('fenced-lock:lock', message);
  }

  get call(): LockMessage {
    return this.#whole.message;
  }

  /** Whether the caller's function has been called. */
  get begun(): boolean {
    return this.#begun;
  }

  async run<R>(action: (trace: CallTrace) => Promise<R>): Promise<R> {
    const { call } = this;
    try {
      const value = await this.#whole.begin(() => action(this));
      call.outcome = this.#outcome;
      this.#whole.succeed();
      return value;
    } catch (error) {
      this.#wait?.fail(error);
      // A function that hangs past its abort does not end it.
      this.#work?.fail(error);
      call.outcome = this.#outcome;
      if (isNotNow(this, error)) this.#whole.succeed();
      else this.#whole.fail(error);
      throw error;
    }
  }

  /** The call waits; `had` or the failure of the call ends that. */
  wait<R>(action: () => R): R {
    this.#wait = new Phase('fenced-lock:wait', { call: this.call });
    return this.#wait.begin(action);
  }

  /** It has its leases, until `released`. */
  had({ keys, holders, via }: Leases): void {
    this.call.keys = keys;
    if (this.#wait) {
      this.#wait.message.via = via;
      this.#wait.succeed();
    }
    this.#hold = new Phase('fenced-lock:hold', { call: this.call, holders, via });
    this.#hold.begin(() => {});
  }

  released(): void {
    this.call.outcome = this.#outcome;
    this.#hold?.succeed();
  }

  /** The caller's function. */
  async work<R>(action: () => Promise<R>): Promise<R> {
    this.#begun = true;
    const phase = new Phase('fenced-lock:work', { call: this.call, transaction: this.#attempt });
    this.#work = phase;
    try {
      const value = await phase.begin(action);
      phase.succeed();
      return value;
    } catch (error) {
      // The function was not called.
      if (isNotDue(this.call, error)) phase.succeed();
      else phase.fail(error);
      throw error;
    }
  }

  /** An attempt at a transaction begins: what follows, until it has settled, is of this one. */
  attempt(): void {
    const { call } = this;
    const transaction: TransactionMessage = { call, beganAt: new Date() };
    this.#transaction = new Phase('fenced-lock:transaction', transaction);
    this.#admission = new Phase('fenced-lock:admission', { call, transaction });
    this.#commit = undefined;
    this.#transaction.begin(() => {});
    this.#admission.begin(() => {});
  }

  admitted({ attempt, tokens, token, turn, pid, xid }: Admitted): void {
    Object.assign(this.#attempt, { attempt, tokens, turn, pid, xid, admittedAt: new Date() });
    this.call.token = token;
    this.#admittedAt = now();
    this.#admission?.succeed();
  }

  /** COMMIT is sent by `send`. */
  committing<R extends { readonly next?: unknown }>(send: () => R): R {
    const phase = new Phase('fenced-lock:commit', { call: this.call, transaction: this.#attempt });
    this.#commit = phase;
    return phase.begin(() => {
      const sent = send();
      phase.message.chained = sent.next !== undefined;
      return sent;
    });
  }

  /** The outcome of the attempt is known. */
  settled(end: { readonly value: unknown } | { readonly error: unknown }, outcome: LockOutcome): void {
    this.#outcome = outcome;
    this.#attempt.outcome = outcome;
    if (outcome !== 'not-admitted') this.#attempt.duration = now() - this.#admittedAt;
    if (this.#commit) this.#commit.message.outcome = outcome;
    const failed = 'error' in end && !isNotDue(this.call, end.error);
    if (failed) this.#admission?.fail(end.error);
    for (const phase of [this.#commit, this.#transaction]) {
      if (failed) phase?.fail(end.error);
      else phase?.succeed();
    }
  }

  /** The message of the present attempt. */
  get #attempt(): TransactionMessage {
    return (this.#transaction as Phase<'fenced-lock:transaction'>).message;
  }
}

/** The code of the answer of `$oncePer` that the run of this interval has been committed. */
export const NOT_DUE = 'NOT_DUE';

/** "Not now" is an answer of `$tryWithLock`, `$tryWithPermit` and `$oncePer`, and no error. `begun`: whether the function has been called. */
export function isNotNow({ call, begun }: Pick<CallTrace, 'call' | 'begun'>, error: unknown): boolean {
  if (!['$tryWithLock', '$tryWithPermit', '$oncePer'].includes(call.operation)) return false;
  return isNotDue(call, error) || (!begun && codeOf(error) === 'LOCK_TIMEOUT');
}

/** The code may be that of an application's error, too. */
function isNotDue({ operation }: LockMessage, error: unknown): boolean {
  return operation === '$oncePer' && codeOf(error) === NOT_DUE;
}
