export {
  ClosedError,
  CommitUnknownError,
  FencedLockError,
  type FencedLockErrorCode,
  InsideTransactionError,
  InvalidOptionError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  type LossReason,
  NestedError,
  NotInstalledError,
  ReentryError,
  StaleTokenError,
  TransactionAbortedError,
} from './base/errors.js';
export type { FencedLockEvent } from './base/events.js';
export { fencedLock, type LockTx, type TryLockOptions } from './extension.js';
export type { AdapterLike, FencedLockOptions, LockOptions, RedisLike } from './options.js';
export type { Lock, TryResult } from './with-lock.js';
