import { Alarm, after, Deadline, LONGEST_TIME, OVERDUE, type Timer, within } from '../base/clock.js';
import { ClosedError, CommitUnknownError, StaleTokenError, TransactionAbortedError } from '../base/errors.js';
import { type Admission, admit } from './admission.js';
import { endBackend, endBlockers } from './backends.js';
import type { Call } from './call.js';
import type { Opening, Operation, Query } from './database.js';
import type { Fencing } from './fencing.js';
import { Gate } from './gate.js';
import { Operations, refuseControl } from './operations.js';
import { resolveOutcome } from './outcome.js';
import { AWAIT_ROW, OWN_TRANSACTION, OWN_XID, START_EPOCH, STILL_HERE } from './sql.js';

/** How long an admission waits for the key's row before it asks who is in its way. */
const PATIENCE = 500;
/** How long who is in its way gets to end by itself once it has asked. */
const BLOCKED_FOR = 50;
/** The token of a handle is not the last of its key any more. */
const SUPERSEDED = 'FL003';
const SILENT = 'Postgres did not answer its first statement.';
/** How long Postgres may take to answer, beyond what it was asked to wait. */
const ANSWER_TIME = 2_000;
/** Postgres ends a statement by itself so much later than our timeout strikes, which says what has happened. */
const BACKSTOP = 500;
/** How long an operation in flight gets to end by itself after a strike. */
const SHORTLY = 50;
/** COMMIT gets the rest of the work's time, and at least so much. */
const LEAST_COMMIT_TIME = 1_000;
/** How long to look for the outcome of a COMMIT that was not answered. */
const OUTCOME_TIME = 15_000;
/** Classes of SQLSTATE that a server also sends when it goes down, whatever becomes of the transaction. */
const TELLS_NOTHING: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX']);

/** How a transaction of the database client ended. */
type End = { readonly error: unknown } | 'committed' | typeof OVERDUE;

/** What earlier attempts have met. */
interface Before {
  readonly blocked: boolean;
  readonly refusedBy: ReturnType<Fencing['rowOf']>;
}

/**
 * One attempt at the transaction: opening → working → (gate shut, drained, probed) → committing → settled.
 *
 * Before `committing` it can only have been rolled back: the database client sends COMMIT when the body resolves
 * and never otherwise. From then on only the answer to COMMIT tells, or the evidence in Postgres.
 */
export class Attempt<Tx, R> {
  readonly #call: Call<Tx, R>;
  readonly #opening: Opening<Tx>;
  readonly #blocked: boolean;
  readonly #refusedBy: Before['refusedBy'];
  readonly #gate = new Gate();
  #phase: 'opening' | 'working' | 'committing' = 'opening';
  #admission: Admission | undefined;
  #operations: Operations | undefined;
  #query: Query | undefined;
  #value: R | undefined;
  #stale: StaleTokenError | undefined;
  /** Why the body has not resolved. */
  #refused: { readonly error: unknown } | undefined;
  #workDeadline = new Deadline(Number.POSITIVE_INFINITY);
  readonly #alarm = new Alarm();

  /**
   * `blocked`: an earlier attempt found somebody in the key's row, although we hold the lease. `refusedBy`: the row
   * that refused an earlier run, if it is known.
   */
  constructor(call: Call<Tx, R>, opening: Opening<Tx>, { blocked, refusedBy }: Before) {
    this.#call = call;
    this.#opening = opening;
    this.#blocked = blocked;
    this.#refusedBy = refusedBy;
  }

  get admitted(): boolean {
    return this.#admission !== undefined;
  }

  async run(): Promise<R> {
    const { grant, strike, onBeat, onCommit } = this.#call;
    if (strike.struck) {
      this.#opening.discard();
      throw strike.reason;
    }
    // A connection that went silent leaves the database client pending for ever, so it is never all we wait for.
    let giveUp: () => void = () => {};
    const overdue = new Promise<typeof OVERDUE>((resolve) => {
      giveUp = () => resolve(OVERDUE);
    });
    const onStrike = () => {
      this.#gate.shut(() => strike.reason);
      // The pool has given it no connection yet, so nothing of it was sent.
      if (this.#query === undefined) giveUp();
      else if (this.#phase !== 'committing') this.#alarm.set(ANSWER_TIME, giveUp);
    };
    const forget = strike.onStrike(onStrike);
    onBeat(() => this.#beat());
    const settled = this.#opening.run(
      (operation) => this.#onOperation(operation),
      async (tx, query) => {
        const admission = await this.#body(tx, query).catch((error: unknown) => {
          this.#refused = { error };
          throw error;
        });
        this.#phase = 'committing';
        onCommit?.(admission);
        this.#alarm.set(Math.max(this.#workDeadline.remaining, LEAST_COMMIT_TIME), giveUp);
      },
    );
    try {
      const end = await Promise.race<End>([
        settled.then(
          () => 'committed',
          (error: unknown) => ({ error }),
        ),
        overdue,
      ]);
      if (end === 'committed') return this.#value as R;
      if (this.#phase !== 'committing') {
        // Without an answer nobody knows whether ROLLBACK has arrived: the transaction may still have the key's row.
        if (end === OVERDUE && this.#admission) await within(endBackend(this.#call, this.#admission), ANSWER_TIME);
        if (end !== OVERDUE) throw end.error;
        throw this.#refused ? this.#refused.error : strike.reason;
      }
      if (end !== OVERDUE && this.#isRefusal(end.error)) throw this.#operations?.named(end.error) ?? end.error;
      return await this.#findOutcome(end === OVERDUE ? undefined : end.error);
    } finally {
      this.#alarm.stop();
      forget();
      this.#gate.shut(() => closed(grant.key));
    }
  }

  /** Resolves if the transaction may commit. */
  async #body(tx: Tx, query: Query): Promise<Admission> {
    const { grant, limits, strike, work, database } = this.#call;
    this.#query = query;
    strike.throwIfStruck();
    this.#strikeAfter(2 * ANSWER_TIME, SILENT);
    if (this.#refusedBy !== undefined) await strike.unlessStruck(query(AWAIT_ROW, this.#refusedBy));
    const admission = await this.#admit(query);
    this.#admission = admission;
    this.#operations = new Operations(this.#call, admission.token, query);
    // In a transaction of its own, and not in our way. Until then outcomes are found by the key's history.
    if (admission.epoch === undefined) void database.rescue(START_EPOCH, []).catch(() => {});
    strike.throwIfStruck();
    this.#phase = 'working';
    this.#workDeadline = new Deadline(limits.timeout);
    this.#strikeAfter(limits.timeout, `it had not ended within its timeout of ${limits.timeout} ms.`);
    try {
      this.#value = await strike.unlessStruck(work(tx, admission));
    } finally {
      // Before COMMIT or ROLLBACK: what is in flight would otherwise go on behind it, outside the transaction.
      this.#gate.shut(() => closed(grant.key));
      await this.#drain(admission);
      // Neither Prisma's error nor Postgres's but the driver's own, which leaves its connection in no known state: with
      // pg's query_timeout, ROLLBACK would be dropped and the pool's next user would commit what we have rejected.
      // Of a connection that broke the server may know nothing, and keep the key's row for as long as the lease.
      const failed = this.#gate.failure?.error;
      if (isPlain(failed)) await endBackend(this.#call, admission);
      else if (this.#call.database.isDisconnect(failed)) await within(endBackend(this.#call, admission), ANSWER_TIME);
    }
    this.#mayCommit();
    if (this.#gate.failure) {
      await this.#probe(admission, query, this.#gate.failure.error);
      this.#mayCommit();
    }
    return admission;
  }

  async #admit(query: Query): Promise<Admission> {
    const { database, grant, limits, strike, registered } = this.#call;
    const waitTime = Math.min(PATIENCE, Math.max(10, limits.wait.deadline.remaining));
    let help: Timer | undefined;
    if (this.#blocked) {
      const [own] = await strike.unlessStruck(query(OWN_TRANSACTION, []));
      help = after(BLOCKED_FOR, () => void endBlockers(this.#call, own));
    }
    const { keys, holders, leaseTime } = grant;
    const workTime = Math.min(limits.timeout + BACKSTOP, LONGEST_TIME);
    try {
      this.#strikeAfter(waitTime + ANSWER_TIME, SILENT);
      return await strike.unlessStruck(admit(query, { keys, holders, leaseTime, workTime, waitTime, ...registered }));
    } catch (error) {
      if (database.sqlState(error) !== SUPERSEDED) throw error;
      const key = database.sqlDetail(error) ?? grant.key;
      const token = registered?.tokens?.[keys.indexOf(key)] ?? 0n;
      throw new StaleTokenError(key, token, undefined, { reason: 'superseded', cause: error });
    } finally {
      help?.stop();
    }
  }

  /** Throws what forbids a commit. */
  #mayCommit(): void {
    this.#call.strike.throwIfStruck();
    if (this.#call.grant.loss) throw this.#call.grant.loss;
    if (this.#stale) throw this.#stale;
  }

  /** Waits for what is in flight: Postgres bounds it by `statement_timeout`, and a strike ends its backend. */
  async #drain(admission: Admission): Promise<void> {
    if (!this.#gate.busy) return;
    await this.#call.strike.unlessStruck(this.#gate.idle()).catch(() => {});
    // Most operations are about to end by themselves, and then the connection stays whole.
    if (this.#gate.busy) await within(this.#gate.idle(), SHORTLY);
    if (!this.#gate.busy) return;
    await endBackend(this.#call, admission);
    await this.#gate.idle();
  }

  /** COMMIT of a transaction that a failed statement has aborted is a ROLLBACK that reports success. */
  async #probe(admission: Admission, query: Query, failure: unknown): Promise<void> {
    const { key } = this.#call.grant;
    const [row] = await query(OWN_XID, []).catch(() => {
      throw new TransactionAbortedError(
        key,
        'a statement in it had failed, which aborts the whole transaction in Postgres, and its function did not ' +
          'pass that error on. See the cause.',
        failure,
      );
    });
    if (row?.['xid'] !== admission.xid) {
      throw new TransactionAbortedError(key, 'it had been ended before its function returned.', failure);
    }
  }

  async #onOperation(operation: Operation): Promise<unknown> {
    refuseControl(operation, this.#call.grant.key);
    this.#noticeLoss();
    this.#gate.enter();
    try {
      return await this.#operations?.send(operation);
    } catch (error) {
      this.#gate.fail(error);
      // Sticky: a caller that swallows it still cannot commit what rests on a row that it could not write.
      if (error instanceof StaleTokenError) this.#stale ??= error;
      this.#noticeLoss();
      throw error;
    } finally {
      this.#gate.leave();
    }
  }

  /**
   * After a stop of the process, replies and closed sockets come before overdue timers: the lease is lost by the
   * clock, which strikes the work, and the caller learns that instead of what it led to.
   */
  #noticeLoss(): void {
    void this.#call.grant.loss;
  }

  /** At each renewal: a holder that is well but awaits something else must not be ended as idle. */
  #beat(): void {
    const query = this.#query;
    if (query === undefined || this.#phase !== 'working' || this.#gate.busy || this.#gate.isShut) return;
    this.#gate.enter();
    void query(STILL_HERE, [])
      .catch((error: unknown) => this.#gate.fail(error))
      .finally(() => this.#gate.leave());
  }

  /** Whether the server itself refused the COMMIT, so that it is known to have been rolled back. */
  #isRefusal(error: unknown): boolean {
    const code = this.#call.database.sqlState(error);
    return code !== undefined && !TELLS_NOTHING.has(code.slice(0, 2));
  }

  async #findOutcome(error: unknown): Promise<R> {
    const { database, emit, grant } = this.#call;
    const admission = this.#admission as Admission;
    const outcome = await resolveOutcome(database.rescue, admission, new Deadline(OUTCOME_TIME));
    emit({ type: 'commit-resolved', key: grant.key, outcome });
    if (outcome === 'committed') return this.#value as R;
    if (outcome === 'unknown') throw new CommitUnknownError(grant.key, admission.xid, error);
    throw new TransactionAbortedError(grant.key, 'the connection failed at COMMIT, which did not hold.', error);
  }

  #strikeAfter(ms: number, why: string): void {
    const { grant, strike } = this.#call;
    // After a strike the alarm is set to give up, and stays so.
    if (strike.struck) return;
    this.#alarm.set(ms, () => strike.now(new TransactionAbortedError(grant.key, why)));
  }
}

function isPlain(error: unknown): boolean {
  return (error as { constructor?: unknown } | undefined)?.constructor === Error;
}

function closed(key: string): ClosedError {
  return new ClosedError(
    'The transaction of this lock has ended, and the operation was not sent. Await every operation inside the function.',
    { key },
  );
}
