import { after, Deadline, type Timer, within } from './base/clock.js';
import { LockTimeoutError } from './base/errors.js';
import { Strike } from './base/strike.js';
import { findJoint, holding } from './context.js';
import type { Admission } from './fence/admission.js';
import type { Database, Opening } from './fence/database.js';
import { Joint } from './join.js';
import type { Prelude, Request } from './lease/caller.js';
import { type Grant, withOthers } from './lease/grant.js';
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
  return await hold(parts, call, work, asked, await withOthers(first, parts.room, call.keys, asked));
}

/** How long a connection may be held while a look has no answer. */
const LOOK_TIME = 20;
/** How long an answer waits for the one before it, whose COMMIT may have to be looked for; ms. */
const IN_ORDER_TIME = 1_000;

/**
 * What a call has from its beginning until it is its turn. One object, because it is there for every caller that waits.
 *
 * The connection is fetched beside the look in Redis, not behind it, where that look is likely to get the lease: nobody
 * waited lately, or the key has been offered. Whoever has to wait after all gives it back first: a waiting caller holds none.
 */
class Asked<Tx> implements Request, Prelude {
  readonly deadline: Deadline;
  readonly #parts: Parts;
  readonly #call: LockCall<Tx>;
  #opening: Opening<Tx> | undefined;
  #timer: Timer | undefined;
  #calm = true;

  constructor(parts: Parts, call: LockCall<Tx>) {
    this.#parts = parts;
    this.#call = call;
    if (parts.calm && call.keys.every((key) => parts.room.isFree(key))) this.open();
    this.deadline = new Deadline(call.options.waitTime);
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

  get mayShare(): boolean {
    return true;
  }

  get mayBeEarly(): boolean {
    const { isolationLevel } = this.#call.options;
    return isolationLevel === undefined || isolationLevel === 'ReadCommitted';
  }

  get ahead(): Prelude {
    return this;
  }

  open(): void {
    if (this.#opening) return;
    const { database, options } = this.#call;
    try {
      this.#opening = database.open(options);
    } catch {
      // It is opened again when it is the caller's turn, and then the error is the caller's.
      return;
    }
    this.#timer = after(LOOK_TIME, () => this.discard());
  }

  discard(): void {
    this.#calm = false;
    this.#parts.calm = false;
    this.#timer?.stop();
    this.#opening?.discard();
    this.#opening = undefined;
  }

  /** The transaction, if it is still open. */
  take(): Opening<Tx> | undefined {
    this.#timer?.stop();
    this.#parts.calm = this.#calm;
    return this.#opening;
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
      return value;
    } catch (error) {
      own.end(error);
      throw error;
    }
  };
  // Whoever comes next waits for our COMMIT in Postgres, which is sent first: what the next one begins with would be in
  // its way. With an older snapshot it would have to begin again.
  const onCommit = ({ isolation }: Admission) => {
    if (isolation === 'read committed') process.nextTick(() => grant.early());
  };
  try {
    const wanted = { database, opening: asked.take(), grant, options, deadline: asked.deadline, onCommit };
    const value = await underGrant(parts, wanted, strike, run);
    // The answers of two connections overtake each other: who asked first hears first. Not at any price: this result is
    // known, and that of the one before may not be for long.
    const before = grant.inOrder();
    if (before) await within(before, IN_ORDER_TIME);
    return value;
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
