export { currentLock, currentTx } from '../../current.js';
export type { KeyOf, KeyPart, LockKey } from './key-of.js';
export type { LockingClient, TryWithLockOptions, WithLockOptions } from './options.js';
export { type LockDecorator, WithLock, WithPermit } from './with-lock.js';
