import { withCaller } from '../base/caller.js';
import { isTraced } from '../base/channels.js';
import { LockTimeoutError } from '../base/errors.js';
import { findJoinable, holding } from '../base/held-keys.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { Query } from '../database/database.js';
import { LeaseSet, withOthers } from '../lease/lease-set.js';
import type { Turn } from '../lease/queue/turn.js';
import type { Admission } from '../transaction/admission.js';
import type { Outcome } from '../transaction/call.js';
import { refuseUnawaited } from '../transaction/unawaited.js';
import { CallHooks } from './hooks.js';
import { JoinableTransaction } from './joinable.js';
import { HeldLock, type Work } from './lock.js';
import { type LockCall, LockRequest, traced } from './lock-request.js';
import type { Parts } from './parts.js';
import { runUnderLeases } from './run-under-leases.js';

/** The result of `$tryWithLock`. A key that is not free is a value; every failure is an error. */
export type TryResult<R> = { readonly acquired: true; readonly value: R } | { readonly acquired: false };

/**
 * Runs one call: acquires the lease, runs the transaction that Postgres admits, releases the lease, runs the hooks. The
 * lease keeps other callers waiting in Redis. Only the admission ensures that no update is lost.
 */
export async function withLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<R> {
  const joinable = joinableOf(call);
  if (joinable) return await joinable.join(work, call.given);
  if (call.trace === undefined && isTraced()) return await withLockTraced(parts, call, work);
  const lockRequest = new LockRequest(parts, call);
  // Calls spend their waiting time here, so keep few objects alive: they exist once for every waiting caller.
  try {
    const first = await enter(parts, call, lockRequest);
    const leases = withOthers(first, parts.room, call.keys, lockRequest);
    const { hooks: running, emit } = parts;
    const hooks = new CallHooks({ running, emit, key: call.keys[0] as string, hookErrors: call.options.hookErrors });
    return await hooks.follow(
      hold(parts, call, work, lockRequest, leases instanceof LeaseSet ? leases : await leases, hooks),
    );
  } catch (error) {
    throw withCaller(error);
  }
}

function withLockTraced<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<R> {
  return traced(call.operation ?? '$withLock', parts, call, (tracedCall) => withLock(parts, tracedCall, work));
}

function enter<Tx>({ room }: Parts, { keys, trace }: LockCall<Tx>, request: LockRequest<Tx>): Promise<Turn> {
  const key = keys[0] as string;
  return trace === undefined ? room.enter(key, request) : trace.wait(() => room.enter(key, request));
}

/** Runs the work under the leases, then releases them. */
async function hold<Tx, R>(
  parts: Parts,
  { client, database, keys, options, trace, beforeWork }: LockCall<Tx>,
  work: Work<Tx, R>,
  lockRequest: LockRequest<Tx>,
  leases: LeaseSet,
  hooks: CallHooks,
): Promise<R> {
  const abort = new LazyAbort();
  trace?.had(leases);
  const run = async (tx: Tx, { token }: Admission, ask: Query) => {
    if (beforeWork) {
      await beforeWork(ask);
      abort.throwIfAborted();
    }
    const lock = new HeldLock(keys, token, abort);
    hooks.begin(lock);
    const own = new JoinableTransaction(client, tx, lock, abort, options);
    try {
      const value = await holding(keys, own, { client, tx, lock }, () => work(tx, lock));
      own.check();
      refuseUnawaited(database, tx, keys[0] as string);
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
      trace,
    };
    return await runUnderLeases(parts, request, abort, run);
  } finally {
    // The outcome is known, or cannot be found out any more. Nothing here throws.
    leases.release();
    trace?.released();
  }
}

/** Like `withLock`, but waits neither for the lease nor, beyond a moment, for the key's row in Postgres. */
export async function tryWithLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<TryResult<R>> {
  let begun = false;
  const noted: Work<Tx, R> = (tx, lock) => {
    begun = true;
    return work(tx, lock);
  };
  try {
    const value = await withLock(
      parts,
      { ...call, operation: call.operation ?? '$tryWithLock', options: { ...call.options, waitTime: 0 } },
      noted,
    );
    return { acquired: true, value };
  } catch (error) {
    // Once the work has begun, the timeout is the work's own, perhaps of another lock.
    if (!begun && error instanceof LockTimeoutError) return { acquired: false };
    throw error;
  }
}

/**
 * The outer transaction to join. Only of the same client: another client's transaction may lack this client's
 * extensions.
 */
function joinableOf({ client, keys, options }: LockCall<unknown>): JoinableTransaction | undefined {
  const mayJoin = (joinable: object) =>
    options.reentry === 'join' && joinable instanceof JoinableTransaction && joinable.client === client;
  return findJoinable(keys, options.nested, mayJoin) as JoinableTransaction | undefined;
}
