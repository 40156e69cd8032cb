import {
  InvalidOptionError,
  LockTimeoutError,
  LockUnavailableError,
  type LossReason,
  quoted,
  type StaleReason,
  StaleTokenError,
  TransactionAbortedError,
} from '../../../base/errors.js';
import { writeConflict } from '../../../prisma/errors.js';

/** What becomes of one call, and at which of its steps. Each error is made by the key and the token of the call. */
export interface Plan {
  readonly key: string | undefined;
  /** Before the function runs: the lock is not had. */
  readonly instead?: (key: string) => unknown;
  /** The lease is lost when this many operations are done; without a number, when the function has returned. */
  readonly lost?: { readonly after: number; readonly reason: LossReason };
  /** The first write behind so many operations is refused. */
  readonly refused?: {
    readonly after: number;
    /** `model`: that of the refused write, if it has one. */
    readonly error: (key: string, token: bigint, ofHandle: boolean, model?: string) => unknown;
  };
  /** In place of COMMIT: it is rolled back. `times`: how many runs of the call. */
  readonly fails?: { readonly times: number; error(key: string): unknown };
  /** The answer to COMMIT is lost. */
  readonly unanswered?: true;
}

/**
 * What is to become of the next call. Each method adds one to the script; calls take them in the order of the script.
 */
export interface Next {
  /** Another caller keeps the lock: LockTimeoutError; `$tryWithLock` is told `{ acquired: false }`. The function does not run. */
  timesOut(): void;
  /** Redis gives no answer: LockUnavailableError. The function does not run. */
  isUnavailable(cause?: unknown): void;
  /**
   * The lease is lost when the function has had `after` results of its operations, or when it returns: `lock.signal` aborts,
   * later operations are refused, and the call rejects with LockLostError. Default of `reason`: `gone`.
   */
  isLost(how?: { readonly after?: number | undefined; readonly reason?: LossReason | undefined }): void;
  /**
   * The first write behind `after` operations, or COMMIT at the latest, is refused with StaleTokenError, also if the function
   * swallows it. Default of `reason`: `superseded`; of `model`: that of the refused write, such as `Stock` of `tx.stock`.
   */
  isStale(how?: {
    readonly after?: number | undefined;
    readonly reason?: StaleReason | undefined;
    readonly model?: string | undefined;
  }): void;
  /** The answer to COMMIT is lost, and nobody can tell whether it held: CommitUnknownError. */
  hasUnknownOutcome(): void;
  /** Postgres rolls back at COMMIT: TransactionAbortedError. */
  isRolledBack(why?: string): void;
  /**
   * Postgres rolls back because of a concurrent transaction: runs again as `retries` says, then rejects with Prisma's error
   * P2034. `times`: how many runs of this one call are rolled back. Default: 1. More than `retries`: it is used up.
   */
  conflicts(how?: { readonly times?: number | undefined }): void;
  /** Any other error instead of the lock, such as one of your own. */
  rejects(error: unknown): void;
}

const SCRIPTED = new Error('The script of fakeLocks says so.');

/** What shall happen, in order. */
export class Script {
  #plans: Plan[] = [];

  /** Of the next call of this key, or of whichever comes next. */
  next(key: string | undefined): Next {
    const named = key === undefined ? 'next()' : `next(${quoted(key)})`;
    // Its stack leads to the test.
    const unsaid = new InvalidOptionError(
      'next',
      `of fakeLocks was called and not told what becomes of the call: write, for example, \`locks.${named}.timesOut()\`.`,
    );
    const placeholder: Plan = { key, instead: () => unsaid };
    this.#plans.push(placeholder);
    const add = (plan: Omit<Plan, 'key'>) => {
      this.#plans = [...this.#plans.filter((one) => one !== placeholder), { key, ...plan }];
    };
    return {
      timesOut: () => add({ instead: (of) => new LockTimeoutError(of, 'its wait time') }),
      isUnavailable: (cause = SCRIPTED) => add({ instead: (of) => new LockUnavailableError(of, cause) }),
      rejects: (error) => add({ instead: () => error }),
      isLost: ({ after = Number.POSITIVE_INFINITY, reason = 'gone' } = {}) => add({ lost: { after, reason } }),
      isStale: ({ after = 0, reason = 'superseded', model } = {}) =>
        add({
          refused: {
            after,
            error: (of, token, ofHandle, written = 'Model') =>
              new StaleTokenError(of, token, model ?? written, { reason, ofHandle }),
          },
        }),
      conflicts: ({ times = 1 } = {}) => add({ fails: { times, error: writeConflict } }),
      hasUnknownOutcome: () => add({ unanswered: true }),
      isRolledBack: (why = SCRIPTED.message) =>
        add({ fails: { times: 1, error: (of) => new TransactionAbortedError(of, 'connection', why) } }),
    };
  }

  /** The first that fits, which is taken by that. `step`: a handle is had at one time, and works at another. */
  take(keys: readonly string[], step: 'lock' | 'work' | 'both'): Plan | undefined {
    const at = this.#plans.findIndex(
      ({ key, instead }) =>
        (key === undefined || keys.includes(key)) && (step === 'both' || (step === 'lock') === (instead !== undefined)),
    );
    return at === -1 ? undefined : this.#plans.splice(at, 1)[0];
  }

  /** How many were not taken. */
  get left(): number {
    return this.#plans.length;
  }

  clear(): void {
    this.#plans = [];
  }
}
