import { Alarm, after, Deadline, LONGEST_TIME, OVERDUE, within } from '../base/clock.js';
import {
  ClosedError,
  CommitUnknownError,
  InsideTransactionError,
  LockTimeoutError,
  type StaleReason,
  StaleTokenError,
  TransactionAbortedError,
  toFencedLockError,
} from '../base/errors.js';
import type { Conductor, Connection, Query, Row, Statement, StatementResult } from '../database/database.js';
import { AWAIT_ROW, OWN_TRANSACTION, START_EPOCH, STILL_HERE } from '../database/sql.js';
import type { Fencing } from '../fencing/fencing.js';
import type { Admission, AdmissionRequest } from './admission.js';
import { endBackend, endBlockers } from './backends.js';
import type { Call, Outcome } from './call.js';
import { Entry, type EntryOptions } from './entry.js';
import { FencedOperations, refuseControl } from './fenced-operations.js';
import { Gate } from './gate.js';
import { resolveOutcome } from './outcome.js';
import { fromOvertaking } from './overtaken.js';

/** How long an admission waits for the key's row before it asks who is in its way. */
const ROW_LOCK_TIMEOUT = 500;
/** How long who is in its way gets to end by itself once it has asked. */
const BLOCKED_FOR = 50;
/** Why the token of a handle is refused: it is not the last of its key any more; the key has no row any more. */
const REFUSALS: ReadonlyMap<string, StaleReason> = new Map([
  ['FL003', 'superseded'],
  ['FL005', 'forgotten'],
]);
/** How long the answer to that is waited for once the row is had; ms. */
const HELP_TIME = 500;
const SILENT = 'Postgres did not answer its first statement.';
/** How long Postgres may take to answer, beyond what it was asked to wait. */
const ANSWER_TIME = 2_000;
/** Postgres ends a statement by itself so much later than our timeout aborts, which says what has happened. */
const BACKSTOP = 500;
/** How long an operation in flight gets to end by itself after a abort. */
const SHORTLY = 50;
/** COMMIT gets the rest of the work's time, and at least so much. */
const LEAST_COMMIT_TIME = 1_000;
/** How long to look for the outcome of a COMMIT that was not answered. */
const OUTCOME_TIME = 15_000;
/** Classes of SQLSTATE that a server also sends when it goes down, whatever becomes of the transaction. */
const TELLS_NOTHING: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX']);

/** What earlier attempts have met. */
export interface Before {
  /** An earlier attempt found somebody in the key's row, although we hold the lease. */
  readonly blocked: boolean;
  /** The row that refused an earlier run, if it is known. */
  readonly refusedBy: ReturnType<Fencing['rowOf']>;
}

/** How an attempt ends. `isUnknown`: nobody can say whether it has committed. */
type End<R> = { readonly value: R } | { readonly error: unknown; readonly isUnknown?: boolean };

/** What an admission is asked for with. */
interface AdmissionInput {
  readonly leases: Pick<Call<unknown, unknown>['leases'], 'keys' | 'holders' | 'leaseTime' | 'shared'>;
  readonly limits: Pick<Call<unknown, unknown>['limits'], 'timeout'>;
  readonly registered?: Call<unknown, unknown>['registered'];
  readonly room: number | undefined;
}

/** What an admission asks for on behalf of a call. */
export function requestOf({ leases, limits, registered, room }: AdmissionInput, waitTime: number): AdmissionRequest {
  const { keys, holders, leaseTime, shared } = leases;
  const workTime = Math.min(limits.timeout + BACKSTOP, LONGEST_TIME);
  // Who has come past the waiting room has lost nothing there to whoever has a lease of it.
  return { keys, holders, leaseTime, workTime, waitTime, room: shared ? undefined : room, ...registered };
}

/**
 * One attempt at the transaction: opening → working → (gate shut, drained) → committing → settled, or refused by Postgres.
 *
 * Before `committing` it can only have been rolled back: COMMIT is sent here and nowhere else. From then on its command
 * tag tells what became of it, or the evidence in Postgres where there was no answer.
 */
export class Attempt<Tx, R> implements Conductor {
  readonly #call: Call<Tx, R>;
  readonly #blocked: boolean;
  readonly #entry: Entry<Tx>;
  readonly #gate = new Gate();
  readonly #alarm = new Alarm();
  #phase: 'opening' | 'working' | 'committing' | 'refused' = 'opening';
  #admission: Admission | undefined;
  #operations: FencedOperations | undefined;
  #value: R | undefined;
  #stale: StaleTokenError | undefined;
  /** The tag of a statement of the work that has ended the transaction. */
  #ended: string | undefined;
  /** Why the body has not resolved. */
  #refused: { readonly error: unknown } | undefined;
  #hasSuccessor = false;
  /** Those in the way of the admission are being ended. */
  #helping: Promise<void> | undefined;
  /** Whether COMMIT had no answer, and its outcome is being looked for. */
  #isLost = false;
  #workDeadline = new Deadline(Number.POSITIVE_INFINITY);
  #settle: (end: End<R>) => void = () => {};

  /** `entry`: one that was begun ahead. */
  constructor(call: Call<Tx, R>, entry: Entry<Tx> | undefined, { blocked, refusedBy }: Before) {
    this.#call = call;
    this.#blocked = blocked;
    const before: Statement[] = [];
    if (refusedBy !== undefined) before.push({ text: AWAIT_ROW, values: refusedBy });
    if (blocked) before.push({ text: OWN_TRANSACTION, values: [] });
    this.#entry = entry ?? Entry.open(call.database, this.#options(before));
  }

  get admitted(): boolean {
    return this.#admission !== undefined;
  }

  run(): Promise<R> {
    const { abort, onBeat } = this.#call;
    const entry = this.#entry;
    if (abort.aborted) {
      entry.discard();
      return Promise.reject(abort.reason);
    }
    return new Promise((resolve, reject) => {
      const forget = abort.onAbort(() => this.#onAbort());
      this.#settle = (end) => {
        this.#settle = () => {};
        this.#alarm.stop();
        forget();
        this.#gate.shut(() => this.#closed());
        if (this.admitted) this.#call.settled?.(this.#outcomeOf(end));
        if ('value' in end) resolve(end.value);
        else reject(end.error);
      };
      onBeat(() => this.#beat());
      entry
        .run(this.#hook, (tx, close) => this.#body(tx, close))
        .then(
          () => this.#onEnd(new Error('the database client never sent COMMIT')),
          (error: unknown) => this.#onEnd(error),
        );
    });
  }

  /** The database client's transaction is over. */
  #onEnd(error: unknown): void {
    this.#entry.over();
    if (this.#phase === 'committing') return;
    this.#alarm.stop();
    const why = this.#refused ? this.#refused.error : (this.#operations?.named(error) ?? error);
    // Only where the connection itself has failed, and not the caller with an error that looks like it.
    const failure = this.#gate.failure?.error;
    const named = failure !== undefined && this.#call.database.isDisconnect(failure) && fromOvertaking(why, this.#call);
    if (named) void named.then((error) => this.#fail(error));
    else this.#fail(why);
  }

  /** Resolves if the transaction may commit. */
  async #body(tx: Tx, close: () => void): Promise<void> {
    const connection = this.#entry.connection as Connection;
    connection.conductor = this;
    try {
      const admission = await this.#admitted(connection);
      await this.#work(tx, close, connection, admission);
    } catch (error) {
      this.#refused = { error };
      // Something of the work's own has ended it, so what it threw then does not say what became of it.
      if (this.admitted && connection.isOver) this.#ended ??= await this.#howEnded();
      throw error;
    } finally {
      close();
      connection.stage = 'ending';
    }
  }

  async #admitted(connection: Connection): Promise<Admission> {
    const { database, abort, limits } = this.#call;
    if (connection.isBehind) this.#alarm.set(limits.wait.deadline.remaining, () => this.#notAnswered());
    else this.#abortAfter(this.#waitTime() + 2 * ANSWER_TIME, SILENT);
    const help = this.#blocked ? this.#askForHelp() : undefined;
    try {
      const admission = await this.#entry.admission.promise;
      // Whom it has ended is known before the work begins: an operator is told.
      if (this.#helping) await within(this.#helping, HELP_TIME);
      // In a transaction of its own, and not in our way. Until then outcomes are found by the key's history.
      if (admission.epoch === undefined) void database.rescue(START_EPOCH, []).catch(() => {});
      abort.throwIfAborted();
      this.#admission = admission;
      this.#operations = new FencedOperations(this.#call, admission.token, connection.query);
      this.#phase = 'working';
      connection.stage = 'working';
      this.#workDeadline = new Deadline(limits.timeout);
      this.#abortAfter(limits.timeout, `it had not ended within its timeout of ${limits.timeout} ms.`);
      return admission;
    } catch (error) {
      throw this.#notAdmitted(error);
    } finally {
      help?.stop();
    }
  }

  /** It was sent with the COMMIT before it, and is answered behind it. Where that one is lost, its connection is closed. */
  #notAnswered(): void {
    const { leases, limits } = this.#call;
    const lost = new Error('the COMMIT before it was not answered');
    const error = new LockTimeoutError(leases.key, `${limits.wait.waitTime} ms`, lost);
    // At once: its ROLLBACK waits for that answer, too.
    this.#fail(error);
    this.#entry.admission.reject(error);
  }

  #notAdmitted(error: unknown): unknown {
    const { database, leases, registered } = this.#call;
    const reason = REFUSALS.get(database.sqlState(error) ?? '');
    if (reason === undefined) return error;
    const key = database.sqlDetail(error) ?? leases.key;
    const token = registered?.tokens?.[leases.keys.indexOf(key)] ?? 0n;
    return new StaleTokenError(key, token, undefined, { reason, cause: error });
  }

  /** Whoever is in the way of the admission and has lost the lease that we have is ended. */
  #askForHelp() {
    return after(BLOCKED_FOR, () => {
      this.#entry.before.at(-1)?.listen(
        ({ rows: [row] }) => {
          this.#helping = endBlockers(this.#call, row);
        },
        () => {},
      );
    });
  }

  async #work(tx: Tx, close: () => void, connection: Connection, admission: Admission): Promise<void> {
    const { abort, work } = this.#call;
    try {
      this.#value = await abort.race(work(tx, admission, (text, values) => this.#ask(connection, text, values)));
      close();
      // What was not awaited is waited for, whole: cut off, half of an operation would be committed.
      if (this.#gate.busy) await abort.race(this.#gate.quiet());
    } catch (error) {
      throw toFencedLockError(error) ?? error;
    } finally {
      // Before COMMIT or ROLLBACK: what is in flight would otherwise go on behind it, outside the transaction.
      this.#gate.shut(() => this.#closed());
      if (this.#gate.busy || this.#gate.failure !== undefined) await this.#drain(connection, admission);
    }
    this.#mayCommit();
  }

  async #ask(connection: Connection, ...statement: Parameters<Query>): Promise<readonly Row[]> {
    this.#gate.enter();
    try {
      return await connection.query(...statement);
    } catch (error) {
      this.#gate.fail(error);
      throw error;
    } finally {
      this.#gate.leave();
    }
  }

  enter(text: string): void {
    const { leases } = this.#call;
    refuseControl(text, leases.key);
    // After a stop of the process, replies and closed sockets come before overdue timers: the lease is lost by the clock,
    // which aborts the work, and the caller learns that instead of what it led to.
    void leases.loss;
    this.#gate.enter();
  }

  left(): void {
    this.#gate.leave();
  }

  failed(error: unknown): unknown {
    void this.#call.leases.loss;
    const named = this.#operations?.named(error) ?? error;
    this.#gate.fail(named);
    this.refused(named);
    this.#gate.leave();
    return named;
  }

  /** Sticky: a caller that swallows it still cannot commit what rests on a row that it could not write. */
  refused(error: unknown): void {
    if (error instanceof StaleTokenError) this.#stale ??= error;
  }

  ended(tag: string): void {
    this.#ended ??= tag;
    this.#gate.shut(() => this.#endedItself());
  }

  /** The only place where COMMIT is sent. */
  async commit<T>(done: T): Promise<T> {
    const { successor } = this.#call;
    const connection = this.#entry.connection as Connection;
    try {
      // COMMIT outside a transaction succeeds, too.
      if (connection.isOver && this.#ended === undefined) this.#ended = await this.#howEnded();
      this.#mayCommit();
    } catch (error) {
      this.#refused = { error };
      await connection.rollback();
      throw error;
    }
    this.#phase = 'committing';
    const chained = connection.canChain ? successor?.() : undefined;
    const { answer, next } = connection.commit(chained?.asked.beginning);
    this.#hasSuccessor = next !== undefined;
    if (next) chained?.begin(next);
    else this.#call.committing?.();
    const time = Math.max(this.#workDeadline.remaining, LEAST_COMMIT_TIME);
    this.#alarm.set(time, () => this.#onLost(connection, undefined));
    return await new Promise<T>((resolve, reject) =>
      answer.listen(
        (committed) => {
          const refusal = this.#onAnswer(committed);
          if (refusal === undefined) resolve(done);
          else reject(refusal);
        },
        (error) => {
          this.#onNoAnswer(connection, error);
          reject(error);
        },
      ),
    );
  }

  #onAnswer({ tag }: StatementResult): TransactionAbortedError | undefined {
    if (tag === 'COMMIT') {
      this.#settle({ value: this.#value as R });
      return undefined;
    }
    const aborted = new TransactionAbortedError(
      this.#call.leases.key,
      'a statement in it had failed, which aborts the whole transaction in Postgres, and its function did not ' +
        'pass that error on. See the cause.',
      this.#gate.failure?.error,
    );
    this.#fail(aborted);
    return aborted;
  }

  #onNoAnswer(connection: Connection, error: unknown): void {
    const code = this.#call.database.sqlState(error);
    // Refused by the server itself, so it is known to have been rolled back. The database client gives it its own form.
    if (code !== undefined && !TELLS_NOTHING.has(code.slice(0, 2))) this.#phase = 'refused';
    else this.#onLost(connection, error);
  }

  /** Throws what forbids a commit. */
  #mayCommit(): void {
    const { abort, leases } = this.#call;
    abort.throwIfAborted();
    if (leases.loss) throw leases.loss;
    if (this.#stale) throw this.#stale;
    if (this.#ended !== undefined) throw this.#endedItself();
  }

  /** Waits for what is in flight: Postgres bounds it by `statement_timeout`, and a abort ends its backend. */
  async #drain(connection: Connection, admission: Admission): Promise<void> {
    if (this.#gate.busy) {
      await this.#call.abort.race(this.#gate.idle()).catch(() => {});
      // Most operations are about to end by themselves, and then the connection stays whole.
      if (this.#gate.busy) await within(this.#gate.idle(), SHORTLY);
      if (this.#gate.busy) {
        await endBackend(this.#call, admission);
        if ((await within(this.#gate.idle(), ANSWER_TIME)) === OVERDUE) connection.destroy();
        await this.#gate.idle();
      }
    }
    // Of a connection that broke the server may know nothing, and keep the key's row for as long as the lease.
    const failed = this.#gate.failure?.error;
    if (failed !== undefined && this.#call.database.isDisconnect(failed)) {
      await within(endBackend(this.#call, admission), ANSWER_TIME);
    }
  }

  #onAbort(): void {
    const { abort } = this.#call;
    this.#gate.shut(() => abort.reason);
    if (this.#phase === 'committing') return;
    if (this.#phase === 'working') {
      this.#alarm.set(ANSWER_TIME, () => this.#giveUp());
      return;
    }
    // It has done nothing. Its connection is cleaned up behind it, however long the admission waits for the row.
    this.#fail(abort.reason);
    const { connection, admission } = this.#entry;
    this.#entry.abandon();
    if (connection === undefined) return;
    const settled = admission.promise.then(
      () => {},
      () => {},
    );
    void within(settled, ROW_LOCK_TIMEOUT + ANSWER_TIME).then((end) => {
      if (end === OVERDUE) connection.destroy();
    });
  }

  /** Without an answer nobody knows whether ROLLBACK has arrived: the transaction may still have the key's row. */
  #giveUp(): void {
    const { abort } = this.#call;
    const ended = endBackend(this.#call, this.#admission as Admission);
    void within(ended, ANSWER_TIME).then(() => {
      this.#entry.connection?.destroy();
      this.#fail(this.#refused ? this.#refused.error : abort.reason);
    });
  }

  /** At each renewal: a holder that is well but awaits something else must not be ended as idle. */
  #beat(): void {
    const connection = this.#entry.connection;
    if (connection === undefined || this.#phase !== 'working' || this.#gate.busy || this.#gate.isShut) return;
    this.#gate.enter();
    void connection
      .query(STILL_HERE, [])
      .catch((error: unknown) => this.#gate.fail(error))
      .finally(() => this.#gate.leave());
  }

  #onLost(connection: Connection, error: unknown): void {
    if (this.#isLost) return;
    this.#isLost = true;
    void this.#findOutcome(error).then((end) => {
      connection.destroy();
      this.#settle(end);
    });
  }

  async #findOutcome(error: unknown): Promise<End<R>> {
    const { database, emit, leases } = this.#call;
    const admission = this.#admission as Admission;
    const outcome = await resolveOutcome(database.rescue, admission, new Deadline(OUTCOME_TIME));
    emit({ type: 'commit-resolved', key: leases.key, outcome });
    if (outcome === 'committed') return { value: this.#value as R };
    if (outcome === 'unknown') {
      return { error: new CommitUnknownError(leases.key, admission.xid, error), isUnknown: true };
    }
    const aborted = new TransactionAbortedError(
      leases.key,
      'the connection failed at COMMIT, which did not hold.',
      error,
    );
    // Where it has passed the key on, its lease tells of who came after it.
    return { error: this.#hasSuccessor ? aborted : await fromOvertaking(aborted, this.#call) };
  }

  readonly #hook: NonNullable<Parameters<Entry<Tx>['run']>[0]> = async (operation) => {
    try {
      this.#gate.throwIfShut();
      return await this.#operations?.send(operation);
    } catch (error) {
      this.refused(error);
      throw error;
    }
  };

  #options(before: readonly Statement[]): EntryOptions {
    const { limits, fencing, leases, database } = this.#call;
    const hooked = fencing.needsHook(database.rescue);
    return { ...limits, key: leases.key, hooked, before, request: () => requestOf(this.#call, this.#waitTime()) };
  }

  #waitTime(): number {
    return Math.min(ROW_LOCK_TIMEOUT, Math.max(10, this.#call.limits.wait.deadline.remaining));
  }

  #fail(error: unknown): void {
    this.#settle({ error });
  }

  /** By what has happened and not by the error: the function may have thrown one of the same class, of another call. */
  #outcomeOf(end: End<R>): Outcome {
    if ('value' in end) return { type: 'committed' };
    // What its own SQL has committed stays, whatever became of the rest.
    const isUnknown = end.isUnknown || (this.#ended !== undefined && this.#ended !== 'ROLLBACK');
    return { type: isUnknown ? 'unknown' : 'rolled-back', error: end.error };
  }

  #abortAfter(ms: number, why: string): void {
    const { leases, abort } = this.#call;
    // After a abort the alarm is set to give up, and stays so.
    if (abort.aborted) return;
    this.#alarm.set(ms, () => abort.abort(new TransactionAbortedError(leases.key, why)));
  }

  async #howEnded(): Promise<string> {
    const { database } = this.#call;
    const outcome = await resolveOutcome(database.rescue, this.#admission as Admission, new Deadline(OUTCOME_TIME));
    return outcome === 'aborted' ? 'ROLLBACK' : 'COMMIT';
  }

  #endedItself(): InsideTransactionError | TransactionAbortedError {
    const { key } = this.#call.leases;
    if (this.#ended === 'ROLLBACK') {
      return new TransactionAbortedError(
        key,
        'it had been ended before its function returned.',
        this.#gate.failure?.error,
      );
    }
    return new InsideTransactionError(
      'The transaction of the lock was ended inside its function, by a COMMIT that is not its own: what was written until ' +
        'then is committed, and nothing was sent after it. Return from the function to commit, or throw to roll back.',
      { key },
    );
  }

  #closed(): ClosedError {
    return new ClosedError(
      'The transaction of this lock has ended, and the operation was not sent. Await every operation inside the function.',
      { key: this.#call.leases.key },
    );
  }
}
