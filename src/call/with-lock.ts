import { LockTimeoutError } from '../base/errors.js';
import { findJoinable, holding } from '../base/held-keys.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { Query } from '../database/database.js';
import { LeaseSet, withOthers } from '../lease/lease-set.js';
import type { Admission } from '../transaction/admission.js';
import type { Outcome } from '../transaction/call.js';
import { refuseUnsent } from '../transaction/unsent.js';
import { CallHooks } from './hooks.js';
import { JoinableTransaction } from './joinable.js';
import { HeldLock, type Work } from './lock.js';
import { type LockCall, LockRequest } from './lock-request.js';
import type { Parts } from './parts.js';
import { runUnderLeases } from './run-under-leases.js';

/** What `$tryWithLock` resolves to: "not now" is a value, everything that is broken an error. */
export type TryResult<R> = { readonly acquired: true; readonly value: R } | { readonly acquired: false };

/**
 * One call, from start to end: the lease, then the transaction that Postgres admits, then the release, then the hooks.
 * The lease keeps the others waiting in Redis; that no update is lost is decided by the admission alone.
 */
export async function withLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<R> {
  const joinable = joinableOf(call);
  if (joinable) return await joinable.join(work, call.given);
  const lockRequest = new LockRequest(parts, call);
  // The one place where a call waits long: whatever hangs on it is there for every caller that waits.
  const first = await parts.room.enter(call.keys[0] as string, lockRequest);
  const leases = withOthers(first, parts.room, call.keys, lockRequest);
  const { hooks: running, emit } = parts;
  const hooks = new CallHooks({ running, emit, key: call.keys[0] as string, hookErrors: call.options.hookErrors });
  return await hooks.follow(
    hold(parts, call, work, lockRequest, leases instanceof LeaseSet ? leases : await leases, hooks),
  );
}

/** From the leases to their release. */
async function hold<Tx, R>(
  parts: Parts,
  { client, database, keys, options, first }: LockCall<Tx>,
  work: Work<Tx, R>,
  lockRequest: LockRequest<Tx>,
  leases: LeaseSet,
  hooks: CallHooks,
): Promise<R> {
  const abort = new LazyAbort();
  const run = async (tx: Tx, { token }: Admission, ask: Query) => {
    if (first) await first(ask);
    const lock = new HeldLock(keys, token, abort);
    hooks.begin(lock);
    const own = new JoinableTransaction(client, tx, lock, abort, options);
    try {
      const value = await holding(keys, own, () => work(tx, lock));
      own.check();
      refuseUnsent(database, tx, keys[0] as string);
      return value;
    } catch (error) {
      own.end(error);
      throw error;
    } finally {
      lock.end();
    }
  };
  const successor = () =>
    leases.pass((next, lease) => (next instanceof LockRequest ? next.follow(database, lease) : undefined));
  try {
    const committing = () => leases.hint();
    const request = {
      database,
      entry: lockRequest.take(),
      leases,
      options,
      deadline: lockRequest.deadline,
      successor,
      committing,
      settled: (outcome: Outcome) => hooks.settle(outcome),
    };
    return await runUnderLeases(parts, request, abort, run);
  } finally {
    // The outcome is known, or nobody will ever know it. Nothing here throws.
    leases.release();
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
function joinableOf({ client, keys, options }: LockCall<unknown>): JoinableTransaction | undefined {
  const mayJoin = (joinable: object) =>
    options.reentry === 'join' && joinable instanceof JoinableTransaction && joinable.client === client;
  return findJoinable(keys, options.nested, mayJoin) as JoinableTransaction | undefined;
}
