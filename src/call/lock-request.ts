import { randomUUID } from 'node:crypto';
import { CallTrace } from '../base/call-trace.js';
import { after, Deadline, now, type Timer } from '../base/clock.js';
import type { LockMessage } from '../base/messages.js';
import type { Connection, Database, Query } from '../database/database.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseRequest, Preopen, PreopenMoment } from '../lease/queue/request.js';
import type { LockOptions, ResolvedLockOptions } from '../options/options.js';
import { requestOf } from '../transaction/attempt.js';
import type { Successor } from '../transaction/call.js';
import { type AskedFor, askFor, Entry, type EntryOptions } from '../transaction/entry.js';
import type { Parts } from './parts.js';

/** A call of `$withLock` after the checks of its arguments. */
export interface LockCall<Tx> {
  /** The client that the method was called on. */
  readonly client: object;
  readonly database: Database<Tx>;
  /** Sorted by their UTF-8 bytes, without duplicates. */
  readonly keys: readonly string[];
  readonly options: ResolvedLockOptions;
  /** The options as the caller gave them. */
  readonly given: LockOptions;
  /** What it is called for whoever listens. Default: `$withLock`. */
  readonly operation?: LockMessage['operation'];
  /** Where somebody listens. */
  readonly trace?: CallTrace | undefined;
  /** Runs before the function in each transaction of the call. If it throws, the transaction is rolled back. */
  readonly beforeWork?: (ask: Query) => Promise<void>;
}

/** Runs a call with a trace. Used only if `isTraced` says that somebody listens. */
export function traced<Tx, R>(
  operation: LockMessage['operation'],
  { roomId }: Parts,
  call: LockCall<Tx>,
  run: (call: LockCall<Tx>) => Promise<R>,
): Promise<R> {
  const { waitTime, leaseTime, timeout } = call.options;
  const trace = new CallTrace({ operation, keys: call.keys, roomId, waitTime, leaseTime, timeout });
  return trace.run(() => run({ ...call, trace }));
}

/**
 * Limits of a transaction that begins ahead of its lease. `entryTime`: how long it keeps its connection without the
 * lease. `rowTime`: how long its admission waits for the key's row. Both in milliseconds. `evenIfWanted`: whether it
 * begins if other callers wait for a connection.
 *
 * Beside a look, the key's row is free if the lease is. Beside another holder's COMMIT, the row is free when the COMMIT
 * is done.
 */
const PREOPEN = {
  look: { entryTime: 20, rowTime: 10, evenIfWanted: true },
  commit: { entryTime: 150, rowTime: 100, evenIfWanted: false },
} as const;
const SNAPSHOT: ReadonlySet<string | undefined> = new Set(['RepeatableRead', 'Serializable']);
/**
 * How long an admission that was sent with the COMMIT of the previous turn may wait for the key's row. Only another
 * process can have locked it; milliseconds.
 */
const BEHIND_COMMIT = 500;

/**
 * The request of one call, from its start until its turn. A single object, because thousands of callers may wait.
 *
 * Its transaction begins ahead, beside the look in Redis, if that look is likely to succeed: nobody waited for the key
 * lately, or the key is offered to this process. If the caller has to wait, the transaction is rolled back first: a
 * waiting caller holds no connection.
 */
export class LockRequest<Tx> implements LeaseRequest, Preopen {
  readonly deadline: Deadline;
  readonly mayShare = true;
  readonly #parts: Parts;
  readonly #call: LockCall<Tx>;
  #entry: Entry<Tx> | undefined;
  /** The connection of the previous turn, on which this call's BEGIN and admission were sent. */
  #begun: { readonly connection: Connection; readonly asked: AskedFor } | undefined;
  #timer: Timer | undefined;
  /** When a transaction was begun beside another process's COMMIT. */
  #hintedAt: number | undefined;

  constructor(parts: Parts, call: LockCall<Tx>) {
    this.#parts = parts;
    this.#call = call;
    this.deadline = new Deadline(call.options.waitTime);
    if (call.keys.every((key) => parts.room.isRecentlyUncontended(key))) this.open('look');
  }

  get waitTime(): number {
    return this.#call.options.waitTime;
  }

  get leaseTime(): number {
    return this.#call.options.leaseTime;
  }

  get renew(): boolean {
    return this.#call.options.renew;
  }

  get signal(): AbortSignal | undefined {
    return this.#call.options.signal;
  }

  get preopen(): Preopen {
    return this;
  }

  open(beside: PreopenMoment): void {
    if (this.#entry) return;
    // A snapshot that is older than the other holder's COMMIT could not update the rows that it wrote.
    if (beside === 'commit' && SNAPSHOT.has(this.#call.options.isolationLevel)) return;
    const holders = this.#call.keys.map(() => randomUUID());
    const { entryTime, rowTime, evenIfWanted } = PREOPEN[beside];
    try {
      this.#entry = Entry.open(this.#call.database, { ...this.#beginning(holders, rowTime), evenIfWanted });
    } catch {
      // The caller opens it again when it is its turn, and gets the error then.
      return;
    }
    this.#hintedAt = beside === 'commit' ? now() : undefined;
    this.#timer = after(entryTime, () => this.discard());
  }

  get admittedSince(): number | undefined {
    return this.#entry?.admission.value === undefined ? undefined : this.#hintedAt;
  }

  discard(): void {
    this.#timer?.stop();
    this.#entry?.discard();
    this.#entry = undefined;
  }

  /** Prepares this call to begin in one flight with the COMMIT of the previous turn, if it can. */
  follow(database: Database<unknown>, { holder, shared }: Lease): Successor | undefined {
    const { keys } = this.#call;
    if (database !== this.#call.database || keys.length > 1) return undefined;
    const asked = askFor(this.#beginning([holder], BEHIND_COMMIT, shared));
    return {
      asked,
      begin: (connection) => {
        this.#begun = { connection, asked };
      },
    };
  }

  /** Returns the transaction, if it has begun. */
  take(): Entry<Tx> | undefined {
    this.#timer?.stop();
    if (this.#begun === undefined) return this.#entry;
    this.#entry?.discard();
    const { connection, asked } = this.#begun;
    // Not in `follow`, because that runs in the async context of the previous turn.
    return Entry.follow(this.#call.database, this.#beginning([], BEHIND_COMMIT), connection, asked);
  }

  #beginning(holders: readonly string[], waitTime: number, shared = false): EntryOptions {
    const { keys, options } = this.#call;
    const { leaseTime } = options;
    const { fencing, roomId: room } = this.#parts;
    const hooked = fencing.needsHook(this.#call.database.rescue);
    const leases = { keys, holders, leaseTime, shared };
    const request = () => requestOf({ leases, limits: options, room }, waitTime);
    const { maxWait, isolationLevel } = options;
    return { key: keys[0] as string, maxWait, isolationLevel, hooked, request };
  }
}
