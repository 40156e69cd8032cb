import { CallTrace } from '../base/call-trace.js';
import { isTraced } from '../base/channels.js';
import type { LockMessage } from '../base/messages.js';
import type { Database, Query } from '../database/database.js';
import type { LockOptions, ResolvedLockOptions } from '../options/options.js';
import type { TransactionParts } from '../transaction/call.js';
import type { WaitingRoom } from '../waiting/room.js';
import type { RunningHooks } from './lock.js';

/** What the calls of one extended client share. */
export interface Parts extends TransactionParts {
  /** What others are told of this process. */
  readonly name: string;
  readonly room: WaitingRoom;
  /** The handles that have not been released. */
  readonly handles: Set<{ close(): Promise<void> }>;
  readonly hooks: RunningHooks;
  /** A connection for looks, which must not keep the rescue connection waiting. */
  readonly lookout: Query;
}

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
  /** The name of the call in its messages. Default: `$withLock`. */
  readonly operation?: LockMessage['operation'];
  /** Where somebody listens. */
  readonly trace?: CallTrace | undefined;
  /** Runs before the function in each transaction of the call. If it throws, the transaction is rolled back. */
  readonly beforeWork?: (ask: Query) => Promise<void>;
}

/** Runs a call, with a trace where somebody listens. */
export function traced<Tx, R>(
  operation: LockMessage['operation'],
  { roomId, name }: Parts,
  call: LockCall<Tx>,
  run: (call: LockCall<Tx>) => Promise<R>,
): Promise<R> {
  if (!isTraced()) return run(call);
  const { waitTime, leaseTime, timeout } = call.options;
  const trace = new CallTrace({ operation, keys: call.keys, roomId, process: name, waitTime, leaseTime, timeout });
  return trace.run(() => run({ ...call, trace }));
}
