import { randomUUID } from 'node:crypto';
import { after, Deadline, type Timer } from './base/clock.js';
import { LockTimeoutError } from './base/errors.js';
import { Strike } from './base/strike.js';
import { findJoint, holding } from './context.js';
import type { Admission } from './fence/admission.js';
import { requestOf } from './fence/attempt.js';
import type { Successor } from './fence/call.js';
import type { Connection, Database } from './fence/database.js';
import { type AskedFor, askFor, Entry, type EntryOptions } from './fence/entry.js';
import { refuseUnsent } from './fence/unsent.js';
import { Joint } from './join.js';
import { Grant, withOthers } from './lease/grant.js';
import type { Lease } from './lease/lease.js';
import type { Beside, Prelude, Request } from './lease/request.js';
import { HeldLock, type Work } from './lock.js';
import type { LockOptions, ResolvedLockOptions } from './options.js';
import type { Parts } from './parts.js';
import { underGrant } from './under-grant.js';

/** What `$tryWithLock` resolves to: "not now" is a value, everything that is broken an error. */
export type TryResult<R> = { readonly acquired: true; readonly value: R } | { readonly acquired: false };

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
}

/**
 * One call, from start to end: the lease, then the transaction that Postgres admits, then the release. The lease
 * keeps the others waiting in Redis; that no update is lost is decided by the admission alone.
 */
export async function withLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<R> {
  const joint = jointOf(call);
  if (joint) return await joint.run(work, call.given);
  const asked = new Asked(parts, call);
  // The one place where a call waits long: whatever hangs on it is there for every caller that waits.
  const first = await parts.room.enter(call.keys[0] as string, asked);
  const granted = withOthers(first, parts.room, call.keys, asked);
  return await hold(parts, call, work, asked, granted instanceof Grant ? granted : await granted);
}

/**
 * What is begun before the lease is there: how long it keeps its connection without it, how long its admission may wait
 * for the key's row, and whether it begins where others wait for a connection; ms. Beside a look whoever has the row has the
 * lease, too. Beside a COMMIT the row is had when that is done.
 */
const AHEAD = {
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
class Asked<Tx> implements Request, Prelude {
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
    if (call.keys.every((key) => parts.room.isCalm(key))) this.open('look');
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

  get ahead(): Prelude {
    return this;
  }

  open(beside: Beside): void {
    if (this.#entry) return;
    // A snapshot from before that COMMIT could not write what it wrote.
    if (beside === 'commit' && SNAPSHOT.has(this.#call.options.isolationLevel)) return;
    const holders = this.#call.keys.map(() => randomUUID());
    const { entryTime, rowTime, evenIfWanted } = AHEAD[beside];
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
    const grant = { keys, holders, leaseTime, shared };
    const request = () => requestOf({ grant, limits: options, room }, waitTime);
    const { maxWait, isolationLevel } = options;
    return { key: keys[0] as string, maxWait, isolationLevel, hooked, request };
  }
}

/** From the leases to their release. */
async function hold<Tx, R>(
  parts: Parts,
  { client, database, keys, options }: LockCall<Tx>,
  work: Work<Tx, R>,
  asked: Asked<Tx>,
  grant: Grant,
): Promise<R> {
  const strike = new Strike();
  const run = async (tx: Tx, { token }: Admission) => {
    const lock = new HeldLock(keys, token, strike);
    const own = new Joint(client, tx, lock, strike, options.isolationLevel);
    try {
      const value = await holding(keys, own, () => work(tx, lock));
      own.check();
      refuseUnsent(database, tx, keys[0] as string);
      return value;
    } catch (error) {
      own.end(error);
      throw error;
    }
  };
  const successor = () =>
    grant.pass((next, lease) => (next instanceof Asked ? next.follow(database, lease) : undefined));
  try {
    const committing = () => grant.hint();
    const wanted = { database, entry: asked.take(), grant, options, deadline: asked.deadline, successor, committing };
    return await underGrant(parts, wanted, strike, run);
  } finally {
    // The outcome is known, or nobody will ever know it. Nothing here throws.
    grant.leave();
  }
}

/** `withLock` that does not wait: for the lease not at all, for the key's row in Postgres a moment. */
export async function tryWithLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<TryResult<R>> {
  let begun = false;
  const noted: Work<Tx, R> = (tx, lock) => {
    begun = true;
    return work(tx, lock);
  };
  try {
    const value = await withLock(parts, { ...call, options: { ...call.options, waitTime: 0 } }, noted);
    return { acquired: true, value };
  } catch (error) {
    // Once the work has begun a timeout is its own, of another lock perhaps.
    if (!begun && error instanceof LockTimeoutError) return { acquired: false };
    throw error;
  }
}

/** The transaction to join. Only of the same client: that of another one lacks what this one is extended by. */
function jointOf({ client, keys, options }: LockCall<unknown>): Joint | undefined {
  const mayJoin = (joint: object) => options.reentry === 'join' && joint instanceof Joint && joint.client === client;
  return findJoint(keys, options.nested, mayJoin) as Joint | undefined;
}
