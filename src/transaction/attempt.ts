import type { AttemptTrace } from '../base/call-trace.js';
import { Alarm, Deadline, within } from '../base/clock.js';
import {
  type AbortReason,
  type ClosedError,
  InvalidOptionError,
  inFlightAtReturn,
  LockTimeoutError,
  lateOperation,
  overdue,
  StaleTokenError,
  TransactionAbortedError,
  toFencedLockError,
} from '../base/errors.js';
import type {
  Conductor,
  Connection,
  Hook,
  Operation,
  Query,
  Row,
  Statement,
  StatementResult,
} from '../database/database.js';
import { AWAIT_ROW, OWN_TRANSACTION, START_EPOCH, STILL_HERE } from '../database/sql.js';
import { fromAdmission, fromGuard } from '../fencing/refusal.js';
import { type Admission, Opening, type OpeningOptions, requestOf } from './admission.js';
import { ANSWER_TIME, BlockerEnd, drain, endBackend, roomOf } from './backends.js';
import type { Call, Outcome } from './call.js';
import { connectionClosed, fromClosedConnection, isLoss } from './closed-connection.js';
import { endedByWork, tagOfEnd } from './ended-by-work.js';
import { FencedOperations } from './fenced-operations.js';
import { Gate } from './gate.js';
import { commitFailed, endOfLostCommit, isCommitRefused, LEAST_COMMIT_TIME } from './lost-commit.js';
import type { EarlierAttempts } from './repetition.js';

/**
 * How long an admission waits for the lock on the key's row before the blocking transactions are looked for;
 * milliseconds.
 */
const ROW_LOCK_TIMEOUT = 500;
/** The same for a call whose wait time is over, such as `$tryWithLock`; milliseconds. It has the lease. */
const LEAST_ROW_WAIT = 250;
/** How often to look whether the COMMIT has been answered that the admission was sent with; milliseconds. */
const COMMIT_CHECK = 500;

/** How an attempt ends. `isUnknown`: nobody can say whether it has committed. */
type End<R> = { readonly value: R } | { readonly error: unknown; readonly isUnknown?: boolean };

/**
 * One attempt at the transaction: opening → working → (gate shut, statements in flight ended) → committing. Where Postgres
 * refuses the COMMIT: → commit-refused. It settles once, in any of them.
 *
 * Before `committing` the transaction can only have been rolled back, because COMMIT is sent here and nowhere else, except where
 * the work's own SQL has ended it (`#ended`). From `committing` on, the command tag of the answer tells the outcome. Without an
 * answer, the evidence in Postgres tells it.
 *
 * It implements `Hook`, because the condition of a write has the token of its admission.
 */
export class Attempt<Tx, R> implements Conductor, Hook {
  readonly #call: Call<Tx, R>;
  readonly #blocked: boolean;
  readonly #opening: Opening<Tx>;
  readonly gate: Gate;
  readonly #alarm = new Alarm();
  readonly #trace: AttemptTrace | undefined;
  #phase: 'opening' | 'working' | 'committing' | 'commit-refused' = 'opening';
  #admission: Admission | undefined;
  #operations: FencedOperations | undefined;
  #value: R | undefined;
  /** The error of the first write that was refused, and not sent or without effect. */
  #refusal: StaleTokenError | InvalidOptionError | undefined;
  /** The command tag of a statement of the work that ended the transaction. */
  #ended: string | undefined;
  /** The error with which the transaction's function rejected. */
  #rejection: { readonly error: unknown } | undefined;
  /** Whether COMMIT had no answer and its outcome is being looked up. */
  #isLost = false;
  #workDeadline = new Deadline(Number.POSITIVE_INFINITY);
  #settle: (end: End<R>) => void = () => {};

  /** @param opening a transaction that was opened ahead, to be used instead of a new one. */
  constructor(call: Call<Tx, R>, opening: Opening<Tx> | undefined, { blocked, staleRow }: EarlierAttempts) {
    this.#call = call;
    this.gate = new Gate(call.leases);
    this.#blocked = blocked;
    const before: Statement[] = [];
    if (staleRow !== undefined) before.push({ text: AWAIT_ROW, values: staleRow });
    if (blocked) before.push({ text: OWN_TRANSACTION, values: [] });
    this.#opening = opening ?? new Opening(call.database, this.#openingOptions(before));
    this.#trace = call.trace?.attempt();
  }

  get admitted(): boolean {
    return this.#admission !== undefined;
  }

  run(): Promise<R> {
    const { abort } = this.#call;
    const opening = this.#opening;
    if (abort.aborted) {
      opening.discard();
      this.#trace?.settled({ error: abort.reason }, 'not-admitted');
      return Promise.reject(abort.reason);
    }
    return new Promise((resolve, reject) => {
      const forget = abort.onAbort(() => this.#onAbort());
      this.#settle = (end) => {
        this.#settle = () => {};
        this.#alarm.stop();
        forget();
        const outcome = this.#outcomeOf(end);
        this.#trace?.settled(end, this.admitted ? outcome.type : 'not-admitted');
        this.gate.shut(() => this.#closed());
        if (this.admitted) this.#onOutcome(outcome);
        if ('value' in end) resolve(end.value);
        else reject(end.error);
      };
      opening.transaction
        .run(this, (tx, close) => this.#body(tx, close))
        .then(
          () => this.#onEnd(),
          (error: unknown) => this.#onEnd({ error }),
        );
    });
  }

  /** Called when the database client has ended its transaction. */
  #onEnd(failed?: { readonly error: unknown }): void {
    this.#opening.onTransactionEnded();
    if (this.#phase === 'committing') return;
    this.#alarm.stop();
    // Not before: an error that is made for nothing costs as much as the rest of this.
    const { error } = failed ?? { error: new Error('the database client never sent COMMIT') };
    const why = this.#rejection ? this.#rejection.error : this.#named(error);
    // Only if a statement failed with a disconnect: the caller's function may throw an error that looks like one.
    const failure = this.gate.failure?.error;
    if (!this.admitted || !isLoss(this.#call.database, failure)) this.#fail(why);
    else this.#fail(fromClosedConnection(why, this.#call, this.#opening.connection?.closedBy, failure));
  }

  /** As `Conductor.closed`. COMMIT has not been sent, so the transaction cannot commit, and the work is of no use any more. */
  closed(error: unknown): void {
    if (this.#phase !== 'working') return;
    const { abort, leases } = this.#call;
    this.gate.fail(error);
    // Whoever takes the key from its holder ends its transaction first. The next caller must not have the key under this holder's id.
    leases.show();
    abort.abort(leases.loss ?? connectionClosed(this.#call, error, [error, this.gate.failure?.error]));
  }

  /** The function that the database client runs in its transaction. Resolves if the transaction may commit. */
  async #body(tx: Tx, close: () => void): Promise<void> {
    const { abort, database, parts } = this.#call;
    const connection = this.#opening.connection as Connection;
    connection.conductor = this;
    try {
      const admission = await this.#admitted(connection);
      if (this.#opening.hooked) {
        // Before the work, so that its first writes are sent as its later ones.
        const unguarded = parts.fencing.unguarded(database.rescue) ?? (await this.#readUnguarded(connection));
        if (unguarded.size > 0) this.#operations = new FencedOperations(this.#call, this, admission.token, unguarded);
      }
      // Otherwise the function would be called although its call was given up since the admission.
      abort.throwIfAborted();
      await this.#work(tx, close, connection, admission);
    } catch (error) {
      // The work itself has ended the transaction, so the error that it threw does not tell the outcome.
      if (this.admitted && connection.isOver) this.#ended ??= await this.#tagOfEnd();
      const why = this.#hasCommittedItself ? this.#endedItself(error) : error;
      this.#rejection = { error: why };
      throw why;
    } finally {
      close();
      connection.stage = 'ending';
    }
  }

  async #admitted(connection: Connection): Promise<Admission> {
    const { database, abort, leases, registered } = this.#call;
    this.#limitOpening(connection);
    const blockers = this.#blocked ? new BlockerEnd(this.#call, this.#opening.before.at(-1)) : undefined;
    try {
      const admission = await this.#opening.admission.promise;
      // The `backend-ended` events come before the work begins, so that forceRelease() sees them.
      if (blockers) await blockers.ended();
      // On the rescue connection and not awaited, so the work is not delayed. Until an epoch exists, the outcome of a
      // lost COMMIT is found by the attempt ids in the key's row.
      if (admission.epoch === undefined) void database.rescue(START_EPOCH, []).catch(() => {});
      abort.throwIfAborted();
      this.#admission = admission;
      this.#trace?.admitted(admission);
      this.#phase = 'working';
      connection.stage = 'working';
      if (connection.closedBy !== undefined) this.closed(connection.closedBy);
      const { timeout } = this.#call.options;
      this.#workDeadline = new Deadline(timeout);
      this.#abortAfter(timeout, 'timeout', () => overdue(timeout, connection.isPoolWaitedFor));
      return admission;
    } catch (error) {
      const named = fromAdmission(error, database, leases, registered?.tokens);
      this.noteRefusal(named);
      throw named;
    } finally {
      blockers?.stop();
    }
  }

  /** Limits the wait for the admission. Behind the COMMIT of the previous turn, its answer may take the whole wait time. */
  #limitOpening(connection: Connection): void {
    const { abort, deadline, leases, options } = this.#call;
    if (!connection.isBehindCommit) {
      const why = 'Postgres did not answer its first statement.';
      this.#abortAfter(ROW_LOCK_TIMEOUT + 2 * ANSWER_TIME, 'connection', () => why);
      return;
    }
    if (abort.aborted) return;
    this.#alarm.set(Math.min(COMMIT_CHECK, deadline.remaining), () => {
      if (!deadline.passed || !connection.isBehindCommit) {
        this.#limitOpening(connection);
        return;
      }
      const lost = new Error('the COMMIT before it was not answered');
      abort.abort(new LockTimeoutError(leases.key, `${options.waitTime} ms`, lost));
    });
  }

  async #work(tx: Tx, close: () => void, connection: Connection, admission: Admission): Promise<void> {
    const { abort, trace } = this.#call;
    const work = () => this.#call.work(tx, admission, (text, values) => this.#ask(connection, text, values));
    try {
      this.#value = await abort.race(trace === undefined ? work() : trace.work(work));
      close();
      // The reply to a statement that was awaited has left the gate before the function could return.
      if (this.gate.isAtWork) throw inFlightAtReturn(this.#call.leases.key, 'a statement');
    } catch (error) {
      throw toFencedLockError(error) ?? error;
    } finally {
      // Shut the gate before COMMIT or ROLLBACK: Prisma would otherwise send it between the statements of an operation,
      // and the rest of them would run outside the transaction.
      this.gate.shut(() => this.#closed());
      if (this.gate.busy || this.gate.failure !== undefined) await drain(this.#call, this.gate, connection, admission);
    }
    this.#mayCommit();
    const refused = this.#call.database.unfinished?.(tx)?.refused;
    if (refused) throw refused;
    // Before COMMIT is sent: the next process takes longer to open its transaction than the COMMIT takes to get there. Not
    // where a statement has failed: Postgres will answer ROLLBACK, or the work's own SQL went back to a savepoint.
    if (this.gate.failure === undefined) this.#call.handover?.hint();
  }

  async #ask(connection: Connection, ...statement: Parameters<Query>): Promise<readonly Row[]> {
    this.gate.enter();
    try {
      return await connection.query(...statement);
    } catch (error) {
      this.gate.fail(error);
      throw error;
    } finally {
      this.gate.leave();
    }
  }

  failed(error: unknown): unknown {
    this.#call.leases.checkExpiry();
    const named = this.#named(error);
    this.gate.fail(named);
    this.noteRefusal(named);
    this.gate.leave();
    return named;
  }

  /** Keep the error: even if the caller's function swallows it, the transaction must not commit. */
  noteRefusal(error: unknown): void {
    if (error instanceof StaleTokenError || error instanceof InvalidOptionError) this.#refusal ??= error;
  }

  ended(tag: string): void {
    this.#ended ??= tag;
    this.gate.shut(() => this.#endedItself());
  }

  /** The only place that sends COMMIT. */
  async commit<T>(done: T): Promise<T> {
    const { nextTurn } = this.#call;
    const connection = this.#opening.connection as Connection;
    try {
      // COMMIT succeeds outside a transaction, too, so find out first how the transaction was ended.
      if (connection.isOver && this.#ended === undefined) this.#ended = await this.#tagOfEnd();
      this.#mayCommit();
    } catch (error) {
      this.#rejection = { error };
      await connection.rollback();
      throw error;
    }
    this.#phase = 'committing';
    const chained = connection.canChain ? nextTurn?.() : undefined;
    const beginning = chained?.request.beginning;
    const { answer, next } = this.#trace
      ? this.#trace.committing(() => connection.commit(beginning))
      : connection.commit(beginning);
    if (next) chained?.onSent(next);
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
      'failed-statement',
      'a statement in it had failed, which aborts the whole transaction in Postgres, and its function did not ' +
        'pass that error on. See the cause.',
      this.gate.failure?.error,
    );
    this.#fail(aborted);
    return aborted;
  }

  #onNoAnswer(connection: Connection, error: unknown): void {
    const code = this.#call.database.sqlState(error);
    if (!isCommitRefused(code)) {
      this.#onLost(connection, error);
      return;
    }
    this.#phase = 'commit-refused';
    const named = this.#named(error);
    this.#rejection = { error: named === error ? commitFailed(this.#call.leases.key, error, code) : named };
  }

  /** Throws the error that forbids a commit, if there is one. */
  #mayCommit(): void {
    const { abort, leases, options } = this.#call;
    abort.throwIfAborted();
    if (leases.loss) throw leases.loss;
    // By the clock: a function that blocks the event loop, and returns, is faster than the timer.
    if (this.#workDeadline.passed) throw new TransactionAbortedError(leases.key, 'timeout', overdue(options.timeout));
    if (this.#refusal) throw this.#refusal;
    if (this.#ended !== undefined) throw this.#endedItself();
  }

  #onAbort(): void {
    const { abort } = this.#call;
    this.gate.shut(() => abort.reason);
    if (this.#phase === 'committing') return;
    if (this.#phase === 'working') {
      this.#alarm.set(ANSWER_TIME, () => this.#giveUp());
      return;
    }
    // The work has not begun, so the caller need not wait. The connection is cleaned up in the background, however long
    // the admission still waits for the key's row.
    this.#fail(abort.reason);
    this.#opening.abandon();
  }

  /** ROLLBACK got no answer, so the transaction may still be open and keep the key's row locked: end its backend. */
  #giveUp(): void {
    const { abort } = this.#call;
    const ended = endBackend(this.#call, this.#admission as Admission);
    void within(ended, ANSWER_TIME).then(() => {
      this.#opening.connection?.destroy();
      this.#fail(this.#rejection ? this.#rejection.error : abort.reason);
    });
  }

  /**
   * Called at each renewal. Keeps Postgres from ending an idle transaction whose holder is alive and awaits something
   * else.
   */
  beat(): void {
    const connection = this.#opening.connection;
    if (connection === undefined || this.#phase !== 'working' || this.gate.busy || this.gate.isShut) return;
    this.gate.enterBeat();
    void connection
      .query(STILL_HERE, [])
      .catch((error: unknown) => (isLoss(this.#call.database, error) ? this.closed(error) : this.gate.fail(error)))
      .finally(() => this.gate.leaveBeat());
  }

  #onLost(connection: Connection, error: unknown): void {
    if (this.#isLost) return;
    this.#isLost = true;
    void endOfLostCommit(this.#call, this.#admission as Admission, error).then((failed) => {
      // Whoever has ended its session may take its lease, too: the next caller must not have that.
      if (failed) this.#call.leases.show();
      connection.destroy();
      this.#settle(failed ?? { value: this.#value as R });
    });
  }

  async #readUnguarded(connection: Connection): Promise<ReadonlySet<string>> {
    // Through the gate, so that a failure of the connection is found there when the outcome is explained.
    return await this.#call.parts.fencing.readUnguarded((text, values) => this.#ask(connection, text, values));
  }

  /** As `Hook.send`. There are no fenced operations where all tables have a guard. */
  send(operation: Operation): Promise<unknown> {
    return this.#operations?.send(operation) ?? operation.send(operation.args);
  }

  #openingOptions(before: readonly Statement[]): OpeningOptions {
    const { options, parts, leases, database, registered } = this.#call;
    const { maxWait, isolationLevel, timeout } = options;
    const request = () => requestOf({ leases, timeout, registered, room: roomOf(this.#call) }, this.#waitTime());
    const hooked = parts.fencing.needsHook(database.rescue);
    return { key: leases.key, maxWait, isolationLevel, hooked, evenIfWanted: true, before, request };
  }

  #waitTime(): number {
    // Its own transaction may hold the key's row for a round trip to Postgres, however far away that is.
    if (this.#call.rollsBack?.()) return ROW_LOCK_TIMEOUT;
    return Math.min(ROW_LOCK_TIMEOUT, Math.max(LEAST_ROW_WAIT, this.#call.deadline.remaining));
  }

  #fail(error: unknown): void {
    this.#settle({ error });
  }

  #onOutcome(outcome: Outcome): void {
    const { handover, notCommitted } = this.#call;
    if (outcome.type !== 'committed') notCommitted?.(outcome);
    // Not behind the database client, which has work of its own after its COMMIT: other processes may wait.
    else handover?.release();
  }

  /** Not by the error's class: the function may have thrown an error of that class from another call. */
  #outcomeOf(end: End<R>): Outcome {
    if ('value' in end) return { type: 'committed' };
    // What the work's own SQL has committed stays committed.
    const isUnknown = end.isUnknown || this.#hasCommittedItself;
    return { type: isUnknown ? 'unknown' : 'rolled-back', error: end.error };
  }

  #abortAfter(ms: number, reason: AbortReason, why: () => string): void {
    const { leases, abort } = this.#call;
    // After an abort, the alarm is set to #giveUp and must not be replaced.
    if (abort.aborted) return;
    // A process that stood still finds both overdue, and this timer may be the first that it runs.
    this.#alarm.set(ms, () => abort.abort(leases.loss ?? new TransactionAbortedError(leases.key, reason, why())));
  }

  #named(error: unknown): unknown {
    const { database, leases, parts, registered } = this.#call;
    if (this.#admission === undefined) return error;
    const { token } = this.#admission;
    const ofHandle = registered !== undefined;
    return fromGuard(error, database, { key: leases.key, token, ofHandle, fencing: parts.fencing });
  }

  /** Whether a statement of the work has committed. */
  get #hasCommittedItself(): boolean {
    return this.#ended !== undefined && this.#ended !== 'ROLLBACK';
  }

  #tagOfEnd(): Promise<string> {
    return tagOfEnd(this.#call.database, this.#admission as Admission);
  }

  #endedItself(cause?: unknown): Error {
    return endedByWork(this.#ended, this.#call.leases.key, this.gate.failure?.error, cause);
  }

  #closed(): ClosedError {
    return lateOperation(this.#call.leases.key);
  }
}
