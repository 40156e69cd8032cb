import { randomUUID } from 'node:crypto';
import { after, Deadline } from './base/clock.js';
import { LockTimeoutError } from './base/errors.js';
import type { Emit } from './base/events.js';
import { Strike } from './base/strike.js';
import { checkContext, holding } from './context.js';
import type { Database } from './fence/database.js';
import type { Fencing } from './fence/fencing.js';
import { fencedTransaction } from './fence/transaction.js';
import { acquire } from './lease/acquire.js';
import type { LocalQueue } from './lease/queue.js';
import { release } from './lease/release.js';
import type { Renewal } from './lease/renewal.js';
import type { LeaseStore } from './lease/store.js';
import type { ResolvedLockOptions } from './options.js';

/** The lock, as the function under it sees it. */
export interface Lock {
  readonly key: string;
  /** The fencing token of this turn: higher than that of every turn of this key that was admitted before. */
  readonly token: bigint;
  /** Aborts when the work must end before its time: the lease is lost, the timeout is over, or the caller's signal. */
  readonly signal: AbortSignal;
  /** `{ key, token }` with the token as a string, which JSON has no number for. */
  toJSON(): { key: string; token: string };
}

/** What `$tryWithLock` resolves to: "not now" is a value, everything that is broken an error. */
export type TryResult<R> = { readonly acquired: true; readonly value: R } | { readonly acquired: false };

export type Work<Tx, R> = (tx: Tx, lock: Lock) => R | Promise<R>;

/** What the calls of one extended client share. */
export interface Parts {
  readonly store: LeaseStore;
  readonly queue: LocalQueue;
  readonly renewal: Renewal;
  readonly fencing: Fencing;
  readonly emit: Emit;
  /** Whether the last caller had its lease without waiting: then the next one probably has it, too. */
  calm: boolean;
}

/**
 * One call, from start to end: the lease, then the transaction that Postgres admits, then the release. The lease
 * keeps the others waiting in Redis; that no update is lost is decided by the admission alone.
 */
export async function withLock<Tx, R>(
  parts: Parts,
  database: Database<Tx>,
  key: string,
  work: Work<Tx, R>,
  options: ResolvedLockOptions,
): Promise<R> {
  const { store, queue, renewal, fencing, emit } = parts;
  const { waitTime, leaseTime, signal } = options;
  checkContext(key, options.nested);
  const ahead = openAhead(parts, database, key, options);
  const wait = { deadline: new Deadline(waitTime), waitTime, signal, onWait: ahead.discard };
  const held = await acquire(store, queue, { key, holder: randomUUID(), leaseTime }, wait, emit);
  const { lease } = held;

  const strike = new Strike();
  const onAbort = () => strike.now(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  lease.onLoss((loss) => {
    emit({ type: 'lease-lost', key, error: loss });
    strike.now(loss);
  });
  let beat = () => {};
  renewal.add(lease, options.renew, () => beat());
  try {
    return await fencedTransaction<Tx, R>({
      database,
      opening: ahead.take(),
      fencing,
      grant: lease,
      limits: { ...options, wait },
      strike,
      work: (tx, token) => holding(key, () => work(tx, new HeldLock(key, token, strike))),
      onBeat: (listener) => {
        beat = listener;
      },
      emit,
    });
  } finally {
    signal?.removeEventListener('abort', onAbort);
    // The outcome is known, or nobody will ever know it. Nothing here waits or throws.
    release(store, renewal, held, emit);
  }
}

/** `withLock` that does not wait: for the lease not at all, for the key's row in Postgres a moment. */
export async function tryWithLock<Tx, R>(
  parts: Parts,
  database: Database<Tx>,
  key: string,
  work: Work<Tx, R>,
  options: ResolvedLockOptions,
): Promise<TryResult<R>> {
  let begun = false;
  const noted: Work<Tx, R> = (tx, lock) => {
    begun = true;
    return work(tx, lock);
  };
  try {
    return { acquired: true, value: await withLock(parts, database, key, noted, { ...options, waitTime: 0 }) };
  } catch (error) {
    // Once the work has begun a timeout is its own, of another lock perhaps.
    if (!begun && error instanceof LockTimeoutError) return { acquired: false };
    throw error;
  }
}

/** How long a connection may be held while a look has no answer. */
const LOOK_TIME = 20;

/**
 * Where nobody waited lately, the connection is fetched beside the look in Redis, not behind it. Whoever has to wait
 * after all gives it back first: a waiting caller holds none.
 */
function openAhead<Tx>(parts: Parts, database: Database<Tx>, key: string, options: ResolvedLockOptions) {
  let opening = parts.calm && parts.queue.isFree(key) ? database.open(options) : undefined;
  let calm = true;
  const discard = () => {
    calm = false;
    parts.calm = false;
    opening?.discard();
    opening = undefined;
  };
  const timer = opening && after(LOOK_TIME, discard);
  return {
    discard,
    /** The transaction, if it is still open. */
    take() {
      timer?.stop();
      parts.calm = calm;
      return opening;
    },
  };
}

class HeldLock implements Lock {
  constructor(
    readonly key: string,
    readonly token: bigint,
    private readonly strike: Strike,
  ) {}

  get signal() {
    return this.strike.signal;
  }

  toJSON() {
    return { key: this.key, token: String(this.token) };
  }
}
