// What the locks of every database client have in common.

export {
  type AbortReason,
  ClosedError,
  CommitUnknownError,
  FencedLockError,
  type FencedLockErrorCode,
  HookFailedError,
  InsideTransactionError,
  InvalidOptionError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  type LossReason,
  NestedError,
  NotInstalledError,
  OutsideLockError,
  ReentryError,
  type StaleReason,
  StaleTokenError,
  TransactionAbortedError,
  toFencedLockError,
} from './base/errors.js';
export type { FencedLockEvent } from './base/events.js';
export type {
  AdmissionMessage,
  CommitMessage,
  HoldMessage,
  LockEventChannels,
  LockMessage,
  LockOutcome,
  LockTracingChannels,
  LockVia,
  TracedMessage,
  TransactionMessage,
  WaitMessage,
  WorkMessage,
} from './base/messages.js';
export type { LockHandle, PermitHandle } from './call/handle.js';
export type { LockHistory, LockTurn } from './call/history.js';
export type { Lock, Permit } from './call/lock.js';
export type { OnceResult } from './call/once-per.js';
export type { LockState } from './call/operators.js';
export { type RecorderOptions, recordLockHistory } from './call/recorder.js';
export type { TryResult } from './call/with-lock.js';
export type { ResumeOptions, TryLockOptions } from './client.js';
export { currentLock } from './current.js';
export type {
  HandleState,
  LockOptions,
  OnceOptions,
  PermitOptions,
  RedisLike,
  SeenState,
  TransactionOptions,
} from './options/options.js';
export { type MemoryStore, memoryStore } from './stores/memory.js';
