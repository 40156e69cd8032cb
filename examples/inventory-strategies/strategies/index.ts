import { conditionalUpdate } from './conditional-update.js';
import { forUpdate } from './for-update.js';
import { noLock } from './no-lock.js';
import { redisFenced } from './redis-fenced.js';
import { redisWatch } from './redis-watch.js';
import { setnx } from './setnx.js';
import { setnxLua } from './setnx-lua.js';
import { setnxOwner } from './setnx-owner.js';
import type { Site, Strategy } from './strategy.js';
import { watchdog } from './watchdog.js';
import { withLock } from './with-lock.js';

export interface Entry {
  readonly open: (site: Site) => Strategy;
  readonly stockIn: 'Postgres' | 'Redis';
}

/** All ways, in the order of the table. */
export const STRATEGIES: Readonly<Record<string, Entry>> = {
  'no lock': { open: noLock, stockIn: 'Postgres' },
  'SETNX + TTL': { open: setnx, stockIn: 'Postgres' },
  'SETNX + owner check': { open: setnxOwner, stockIn: 'Postgres' },
  'SETNX + release in Lua': { open: setnxLua, stockIn: 'Postgres' },
  'watchdog + pub/sub': { open: watchdog, stockIn: 'Postgres' },
  'WATCH, MULTI, EXEC': { open: redisWatch, stockIn: 'Redis' },
  'token checked in Redis': { open: redisFenced, stockIn: 'Redis' },
  'SELECT … FOR UPDATE': { open: forUpdate, stockIn: 'Postgres' },
  'one conditional UPDATE': { open: conditionalUpdate, stockIn: 'Postgres' },
  $withLock: { open: withLock, stockIn: 'Postgres' },
};
