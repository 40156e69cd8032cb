export type { LockTx } from './client.js';
export { type CurrentTxOptions, currentTx } from './current.js';
export { fencedLock } from './extension.js';
export type { AdapterLike, FencedLockOptions } from './options/options.js';
export * from './public.js';
