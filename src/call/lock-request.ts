import { randomUUID } from 'node:crypto';
import { after, Deadline, type Timer } from '../base/clock.js';
import type { Connection, Database, Query } from '../database/database.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseRequest, Preopen, PreopenMoment } from '../lease/queue/request.js';
import type { LockOptions, ResolvedLockOptions } from '../options/options.js';
import { requestOf } from '../transaction/attempt.js';
import type { Successor } from '../transaction/call.js';
import { type AskedFor, askFor, Entry, type EntryOptions } from '../transaction/entry.js';
import type { Parts } from './parts.js';

/** One call, checked. */
export interface LockCall<Tx> {
  /** The client that it was called on. */
  readonly client: object;
  readonly database: Database<Tx>;
  /** Sorted by their bytes, without duplicates. */
  readonly keys: readonly string[];
  readonly options: ResolvedLockOptions;
  /** The options as they were given. */
  readonly given: LockOptions;
  /** Comes before the function in each of its transactions, which ends with what it throws. */
  readonly first?: (ask: Query) => Promise<void>;
}

/**
 * What is begun before the lease is there: how long it keeps its connection without it, how long its admission may wait
 * for the key's row, and whether it begins where others wait for a connection; ms. Beside a look whoever has the row has the
 * lease, too. Beside a COMMIT the row is had when that is done.
 */
const PREOPEN = {
  look: { entryTime: 20, rowTime: 10, evenIfWanted: true },
  commit: { entryTime: 150, rowTime: 100, evenIfWanted: false },
} as const;
const SNAPSHOT: ReadonlySet<string | undefined> = new Set(['RepeatableRead', 'Serializable']);
/** How long one that was sent with the COMMIT before it may wait for it: only another process can have it; ms. */
const BEHIND_COMMIT = 500;

/**
 * What a call has from its beginning until it is its turn. One object, because it is there for every caller that waits.
 *
 * Its transaction begins beside the look in Redis, not behind it, where that look is likely to get the lease: nobody
 * waited lately, or the key has been offered. Whoever has to wait after all rolls it back first: a waiting caller holds
 * no connection.
 */
export class LockRequest<Tx> implements LeaseRequest, Preopen {
  readonly deadline: Deadline;
  readonly mayShare = true;
  readonly #parts: Parts;
  readonly #call: LockCall<Tx>;
  #entry: Entry<Tx> | undefined;
  /** The connection of the turn before, on which this one's beginning has been sent. */
  #begun: { readonly connection: Connection; readonly asked: AskedFor } | undefined;
  #timer: Timer | undefined;

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
    // A snapshot from before that COMMIT could not write what it wrote.
    if (beside === 'commit' && SNAPSHOT.has(this.#call.options.isolationLevel)) return;
    const holders = this.#call.keys.map(() => randomUUID());
    const { entryTime, rowTime, evenIfWanted } = PREOPEN[beside];
    try {
      this.#entry = Entry.open(this.#call.database, { ...this.#beginning(holders, rowTime), evenIfWanted });
    } catch {
      // It is opened again when it is the caller's turn, and then the error is the caller's.
      return;
    }
    this.#timer = after(entryTime, () => this.discard());
  }

  discard(): void {
    this.#timer?.stop();
    this.#entry?.discard();
    this.#entry = undefined;
  }

  /** Has this call begin with the COMMIT of the turn before it, if it can. */
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

  /** The transaction, if it has begun. */
  take(): Entry<Tx> | undefined {
    this.#timer?.stop();
    if (this.#begun === undefined) return this.#entry;
    this.#entry?.discard();
    const { connection, asked } = this.#begun;
    // Here and not in `follow`, which runs in the async context of the turn before.
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
