export { TransactionalAdapterFencedLock } from './adapter.js';
export type { FencedLockTransactionOptions, LockingClient, TransactionalAdapterOptions } from './options.js';
