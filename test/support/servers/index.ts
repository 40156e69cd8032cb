import * as postgres from '../../../src/addons/testing/servers/postgres.js';
import * as redis from '../../../src/addons/testing/servers/redis.js';
import type { RedisServer } from './redis-group.js';

export { withDatabase } from '../../../src/addons/testing/servers/pg.js';
export { freePort } from '../../../src/addons/testing/servers/programs.js';
export { askServer, type RedisOptions } from '../../../src/addons/testing/servers/redis.js';
export { type ClusterGroup, startCluster } from './cluster.js';
export { startOne, startQuorum, valkeyUnavailable } from './independent.js';
export { applyMigrations } from './migrate.js';
export { type PgBouncer, pgBouncerFollowsPrepared, pgBouncerUnavailable, startPgBouncer } from './pgbouncer.js';
export { type FailoverGroup, groupsUnavailable, type RedisGroup, type RedisServer } from './redis-group.js';
export { startSentinelGroup } from './sentinel.js';
export { moveClock, wallClock, wallClocksUnavailable } from './wall-clock.js';

export type PostgresServer = RedisServer & postgres.PostgresServer;

// Those of DATABASE_URL, of REDIS_URL and in Docker can be used, and not be hurt.
export const startPostgres = postgres.startPostgres as (
  ...given: Parameters<typeof postgres.startPostgres>
) => Promise<PostgresServer>;
export const startRedis = redis.startRedis as (options?: redis.RedisOptions) => Promise<RedisServer>;
