import { Alarm, Deadline, within } from '../base/clock.js';
import {
  inFlightAtReturn,
  lateOperation,
  overdue,
  TransactionAbortedError,
  toFencedLockError,
} from '../base/errors.js';
import { Reply } from '../base/reply.js';
import type { Conductor, Connection, Hook, Operation, Query } from '../database/database.js';
import { whereInstalled } from '../database/installed.js';
import { STILL_HERE } from '../database/sql.js';
import { OrderedWrites } from '../fencing/ordered-writes.js';
import { fromAdmission } from '../fencing/refusal.js';
import type { Admission } from './admission.js';
import { abortFor, admissionOf, open } from './admitting.js';
import { ANSWER_TIME, drain, endBackend } from './backends.js';
import type { Call, EarlierAttempts, Outcome } from './call.js';
import { failureOfCommit, LEAST_COMMIT_TIME } from './commit.js';
import { Gate } from './gate.js';
import type { Opening } from './opening.js';
import { commitFailed, connectionClosed, fromClosedConnection, isLoss } from './rolled-back.js';

/** How an attempt ends. `isUnknown`: nobody can say whether it has committed. */
type End<R> = { readonly value: R } | { readonly error: unknown; readonly isUnknown?: boolean };

/**
 * One attempt at the transaction. Its states, and how it leaves them:
 *
 * - `opening`: BEGIN and the admission are on their way. Admitted: `working`. Refused, or given up: `settled`.
 * - `working`: the caller's function runs, and its statements pass the gate. It returns, throws or is aborted: `draining`. Given
 *   up before it was called: `settled`.
 * - `draining`: the gate is shut, and statements in flight are waited for. Then the database client sends COMMIT, which is
 *   sent on if nothing forbids it: `committing`. Or it sends ROLLBACK: `settled` when it has ended, or when it got no answer
 *   in time and the backend was ended.
 * - `committing`: COMMIT has been sent. Its tag, or the evidence in Postgres, tells the outcome: `settled`. Postgres refused
 *   it: `draining`, because the database client still rolls back.
 * - `settled`: the outcome has been told, once.
 *
 * Before `committing` the transaction can only have been rolled back, because COMMIT is sent here and nowhere else, except
 * where the work's own SQL has ended it (the gate remembers that).
 */
export class Attempt<Tx, R> implements Conductor, Hook {
  readonly #call: Call<Tx, R>;
  readonly #isBlocked: boolean;
  readonly #opening: Opening<Tx>;
  readonly #alarm = new Alarm();
  readonly #end = new Reply<R>();
  #state: 'opening' | 'working' | 'draining' | 'committing' | 'settled' = 'opening';
  /** What it is from its admission on. */
  #admission: Admission | undefined;
  #gate: Gate | undefined;
  #deadline = new Deadline(Number.POSITIVE_INFINITY);
  #writes: OrderedWrites | undefined;
  #value: R | undefined;
  /** The error with which the transaction's function rejected. */
  #rejection: { readonly error: unknown } | undefined;
  #unfollow: () => void = () => {};

  /** @param opening a transaction that was opened ahead, to be used instead of a new one. */
  constructor(call: Call<Tx, R>, opening: Opening<Tx> | undefined, earlier: EarlierAttempts) {
    this.#call = call;
    this.#isBlocked = earlier.blocked === true;
    this.#opening = opening ?? open(call, earlier);
    call.trace?.attempt();
  }

  get admitted(): boolean {
    return this.#admission !== undefined;
  }

  /** As `Conductor.key`. */
  get key(): string {
    return this.#call.leases.key;
  }

  /** As `Conductor.gate`: the connection has its conductor from the admission on. */
  get gate(): Gate {
    return this.#gate as Gate;
  }

  run(): Promise<R> {
    const { abort } = this.#call;
    if (abort.aborted) {
      this.#opening.discard();
      this.#settle({ error: abort.reason });
    } else {
      this.#unfollow = abort.onAbort(() => this.#onAbort());
      this.#opening.transaction
        .run(this, (tx, close) => this.#body(tx, close))
        .then(
          () => this.#onEnd(),
          (error: unknown) => this.#onEnd({ error }),
        );
    }
    return this.#end.promise;
  }

  /** The function that the database client runs in its transaction. Resolves if the transaction may commit. */
  async #body(tx: Tx, close: () => void): Promise<void> {
    const { abort, database, parts } = this.#call;
    const connection = this.#opening.connection as Connection;
    try {
      const admission = await this.#begin(connection);
      const ask: Query = (...statement) => this.gate.pass(() => connection.query(...statement));
      if (this.#opening.hooked) {
        // Before the work, so that its first writes are sent as its later ones. Through the gate, so that a failure of the
        // connection is found there when the outcome is explained.
        const read = () => parts.fencing.readUnguarded(whereInstalled(ask, database));
        const unguarded = parts.fencing.unguarded(database.rescue) ?? (await read());
        if (unguarded.size > 0) this.#writes = this.#orderedWrites(unguarded, admission);
      }
      // Otherwise the function would be called although its call was given up since the admission.
      abort.throwIfAborted();
      await this.#work(tx, close, ask, admission);
    } catch (error) {
      await this.#gate?.findEnd(connection);
      // The work itself has ended the transaction, so the error that it threw does not tell the outcome.
      const why = this.#gate?.hasCommitted ? this.#gate.endError(error) : error;
      this.#rejection = { error: why };
      throw why;
    } finally {
      close();
      connection.stage = 'ending';
    }
  }

  async #begin(connection: Connection): Promise<Admission> {
    const { abort, database, leases, registered, options } = this.#call;
    try {
      const admission = await admissionOf(this.#call, this.#opening, connection, this.#alarm, this.#isBlocked);
      abort.throwIfAborted();
      this.#admission = admission;
      this.#gate = new Gate(this.#call, admission);
      this.#call.trace?.admitted(admission);
      this.#state = 'working';
      connection.conductor = this;
      connection.stage = 'working';
      const { timeout } = options;
      this.#deadline = new Deadline(timeout);
      this.#alarm.set(timeout, () => abortFor(this.#call, 'timeout', overdue(timeout, connection.isPoolWaitedFor)));
      if (connection.closedBy !== undefined) this.closed(connection.closedBy);
      return admission;
    } catch (error) {
      throw fromAdmission(error, database, leases, registered?.tokens);
    }
  }

  async #work(tx: Tx, close: () => void, ask: Query, admission: Admission): Promise<void> {
    const { abort, database, handover, leases, trace } = this.#call;
    const { gate } = this;
    const work = () => this.#call.work(tx, admission, ask);
    try {
      this.#value = await abort.race(trace === undefined ? work() : trace.work(work));
      // The reply to a statement that was awaited has left the gate before the function could return.
      if (gate.isAtWork) throw inFlightAtReturn(leases.key, 'a statement');
    } catch (error) {
      throw toFencedLockError(error) ?? error;
    } finally {
      // Shut the gate before COMMIT or ROLLBACK: Prisma would otherwise send it between the statements of an operation,
      // and the rest of them would run outside the transaction.
      this.#state = 'draining';
      close();
      gate.shut(() => lateOperation(leases.key));
      const connection = this.#opening.connection as Connection;
      if (gate.busy || gate.failure !== undefined) await drain(this.#call, gate, connection, admission);
    }
    this.#checkCommit();
    const refused = database.unfinished?.(tx)?.refused;
    if (refused) throw refused;
    // Before COMMIT is sent: the next process takes longer to open its transaction than the COMMIT takes to get there. Not
    // where a statement has failed: Postgres will answer ROLLBACK, or the work's own SQL went back to a savepoint.
    if (gate.failure === undefined) handover?.hint();
  }

  /** Called by the database client when it sends COMMIT. The only place that does. */
  async commit<T>(done: T): Promise<T> {
    const { nextTurn, leases, trace } = this.#call;
    const { gate } = this;
    const connection = this.#opening.connection as Connection;
    try {
      // COMMIT succeeds outside a transaction, too, so find out first how the transaction was ended.
      await gate.findEnd(connection);
      this.#checkCommit();
    } catch (error) {
      this.#rejection = { error };
      await connection.rollback();
      throw error;
    }
    this.#state = 'committing';
    const chained = connection.canChain ? nextTurn?.() : undefined;
    const send = () => connection.commit(chained?.request.beginning);
    const { answer, next } = trace ? trace.committing(send) : send();
    if (next) chained?.onSent(next);
    const time = Math.max(this.#deadline.remaining, LEAST_COMMIT_TIME);
    const sent = { connection, admission: this.#admission as Admission, answer, alarm: this.#alarm, time };
    const failure = await failureOfCommit(this.#call, sent, () => gate.failure?.error);
    if (failure?.refusedBy === undefined) {
      this.#settle(failure ?? { value: this.#value as R });
    } else {
      const { error, refusedBy } = failure;
      const named = gate.named(error);
      this.#state = 'draining';
      this.#rejection = { error: named === error ? commitFailed(leases.key, error, refusedBy) : named };
      this.#alarm.set(ANSWER_TIME, () => this.#giveUp());
    }
    if (failure) throw failure.error;
    return done;
  }

  /** Throws the error that forbids a commit, if there is one. */
  #checkCommit(): void {
    const { abort, leases, options } = this.#call;
    abort.throwIfAborted();
    if (leases.loss) throw leases.loss;
    // By the clock: a function that blocks the event loop, and returns, is faster than the timer.
    if (this.#deadline.passed) throw new TransactionAbortedError(leases.key, 'timeout', overdue(options.timeout));
    this.gate.throwIfRefused();
  }

  /** Called when the database client has ended its transaction. */
  #onEnd(failed?: { readonly error: unknown }): void {
    this.#opening.onTransactionEnded();
    // What became of the COMMIT tells its answer.
    if (this.#state === 'committing' || this.#state === 'settled') return;
    // Not before: an error that is made for nothing costs as much as the rest of this.
    const { error } = this.#rejection ?? failed ?? { error: new Error('the database client never sent COMMIT') };
    const gate = this.#gate;
    const why = this.#rejection ? error : (gate?.named(error) ?? error);
    // Only if a statement failed with a disconnect: the caller's function may throw an error that looks like one.
    const failure = gate?.failure?.error;
    const closedBy = this.#opening.connection?.closedBy;
    const isLost = isLoss(this.#call.database, failure);
    this.#settle({ error: isLost ? fromClosedConnection(why, this.#call, closedBy, failure) : why });
  }

  #onAbort(): void {
    const { abort } = this.#call;
    this.#gate?.shut(() => abort.reason);
    if (this.#state === 'committing') return;
    if (this.#state !== 'opening') {
      this.#alarm.set(ANSWER_TIME, () => this.#giveUp());
      return;
    }
    // The work has not begun, so the caller need not wait. The connection is cleaned up in the background, however long
    // the admission still waits for the key's row.
    this.#settle({ error: abort.reason });
    this.#opening.abandon();
  }

  /**
   * The transaction has not ended in time after an abort: its statements, or its ROLLBACK, got no answer. It may keep the key's row
   * locked: end its backend.
   */
  #giveUp(): void {
    const ended = endBackend(this.#call, this.#admission as Admission);
    void within(ended, ANSWER_TIME).then(() => {
      this.#opening.connection?.destroy();
      this.#settle({ error: this.#rejection ? this.#rejection.error : this.#call.abort.reason });
    });
  }

  /** As `Conductor.closed`. COMMIT has not been sent, so the transaction cannot commit, and the work is of no use any more. */
  closed(error: unknown): void {
    if (this.#state !== 'working' && this.#state !== 'draining') return;
    const { abort, leases } = this.#call;
    this.gate.fail(error);
    // Whoever takes the key from its holder ends its transaction first. The next caller must not have the key under this holder's id.
    leases.show();
    abort.abort(leases.loss ?? connectionClosed(this.#call, error, [error, this.gate.failure?.error]));
  }

  #orderedWrites(unguarded: ReadonlySet<string>, { token }: Admission): OrderedWrites {
    const { database, leases, parts, registered } = this.#call;
    const { field, models } = parts.fencing;
    const isNoMatch = (error: unknown) => database.isNoMatch(error);
    const fence = { key: leases.key, token, ofHandle: registered !== undefined, field, models, unguarded, isNoMatch };
    return new OrderedWrites(fence, this.gate);
  }

  /** As `Hook.send`. They have no order of their own where all tables have a guard. */
  send(operation: Operation): Promise<unknown> {
    return this.#writes?.send(operation) ?? operation.send(operation.args);
  }

  /**
   * Called at each renewal. Keeps Postgres from ending an idle transaction whose holder is alive and awaits something
   * else.
   */
  beat(): void {
    const { connection } = this.#opening;
    if (connection === undefined || this.#state !== 'working' || this.gate.busy || this.gate.isShut) return;
    const sent = this.gate.pass(() => connection.query(STILL_HERE, []), true);
    sent.catch((error: unknown) => {
      if (isLoss(this.#call.database, error)) this.closed(error);
    });
  }

  /** The first call counts. */
  #settle(end: End<R>): void {
    if (this.#state === 'settled') return;
    this.#state = 'settled';
    this.#alarm.stop();
    this.#unfollow();
    const { handover, leases, notCommitted, trace } = this.#call;
    // Not by the error's class: the function may have thrown an error of that class from another call. What the work's own
    // SQL has committed stays committed.
    const outcome: Outcome =
      'value' in end
        ? { type: 'committed' }
        : { type: end.isUnknown || this.#gate?.hasCommitted ? 'unknown' : 'rolled-back', error: end.error };
    trace?.settled(end, this.admitted ? outcome.type : 'not-admitted');
    this.#gate?.shut(() => lateOperation(leases.key));
    // Not behind the database client, which has work of its own after its COMMIT: other processes may wait.
    if (outcome.type === 'committed') handover?.end();
    else if (this.admitted) notCommitted?.(outcome);
    if ('value' in end) this.#end.resolve(end.value);
    else this.#end.reject(end.error);
  }
}
