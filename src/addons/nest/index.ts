export { currentLock, currentTx } from '../../current.js';
export { ClientClass, type LockClient, type LockOperators } from './client.js';
export { FencedLockExceptionFilter } from './filter.js';
export { FencedLockHealthIndicator, type HealthOptions, type LockHealth } from './health.js';
export { getLockClientToken, getLockServiceToken, InjectLockClient, InjectLockService } from './injection-tokens.js';
export { FencedLockModule } from './module.js';
export type { FencedLockModuleExtras, FencedLockModuleOptions } from './options.js';
export { FencedLockService } from './service.js';
export { WithLock, WithPermit } from './with-lock.js';
