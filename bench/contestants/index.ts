import { advisoryLock } from './advisory-lock.js';
import { atomicUpdate } from './atomic-update.js';
import { bareTransaction } from './bare-transaction.js';
import type { Contestant } from './contestant.js';
import { forUpdate } from './for-update.js';
import { handle } from './handle.js';
import { optimistic } from './optimistic.js';
import { queuedForUpdate } from './queued-for-update.js';
import { redisSemaphore } from './redis-semaphore.js';
import { redlock } from './redlock.js';
import { redlockUniversal } from './redlock-universal.js';
import { simpleRedisMutex } from './simple-redis-mutex.js';
import { withLockAlone, withLockAndGuard } from './with-lock.js';

/** In the order in which they are shown. One more is a file, and its name here. */
export const CONTESTANTS: readonly Contestant[] = [
  bareTransaction,
  atomicUpdate,
  forUpdate,
  queuedForUpdate,
  advisoryLock,
  optimistic,
  redlock,
  redisSemaphore,
  redlockUniversal,
  simpleRedisMutex,
  withLockAlone,
  withLockAndGuard,
  handle,
];

export { bareTransaction, queuedForUpdate, withLockAlone };

/** @throws where there is none */
export function contestantOf(name: string): Contestant {
  const found = CONTESTANTS.find((contestant) => contestant.name === name);
  if (found === undefined)
    throw new Error(`There is no contestant ${name}: ${CONTESTANTS.map((c) => c.name).join(', ')}.`);
  return found;
}
