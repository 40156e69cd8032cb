import { lockingClient, plainClient } from './client.js';
import { plainRedisLock } from './plain-redis-lock.js';
import { tryWithLock } from './try-with-lock.js';
import type { Means, Way } from './way.js';
import { withLock } from './with-lock.js';

/** The ways of the package, and for the controls one without its row conditions and one without the package. */
const WAYS = {
  $withLock: (means: Means) => withLock(lockingClient(means)),
  $tryWithLock: (means: Means) => tryWithLock(lockingClient(means)),
  '$withLock, nothing fenced': (means: Means) => withLock(lockingClient(means, [])),
  'plain Redis lock': (means: Means) => plainRedisLock(means, plainClient(means.site)),
} as const satisfies Record<string, (means: Means) => Way>;

export type WayName = keyof typeof WAYS;

export const WAYS_OF_THE_PACKAGE: readonly WayName[] = ['$withLock', '$tryWithLock'];

export function openWay(name: WayName, means: Means): Way {
  return WAYS[name](means);
}
