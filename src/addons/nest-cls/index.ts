export {
  type FencedLockTransactionOptions,
  type LockingClient,
  TransactionalAdapterFencedLock,
  type TransactionalAdapterOptions,
} from './adapter.js';
