export { dockerAnswers } from './docker.js';
export { NotSupervised, ServerUnavailable } from './errors.js';
export { freePort } from './free-port.js';
export { applyMigrations } from './migrate.js';
export { startPostgres } from './postgres.js';
export { type PostgresServer, withUser } from './postgres-server.js';
export { redisUnavailable, startRedis } from './redis.js';
export type { RedisOptions, RedisServer } from './redis-server.js';
