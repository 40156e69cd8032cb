import { createHash } from 'node:crypto';
import { type Emit, emitOf, toEmit } from './base/events.js';
import type { Observed } from './call/observed.js';
import { list } from './call/operators.js';
import type { Query } from './database/database.js';
import type { RedisLike, ResolvedOptions } from './options/options.js';
import type { ClusterClient, RedisClient } from './redis/client.js';
import { RedisStore } from './redis/store.js';
import { FallbackStore } from './stores/fallback.js';
import { QuorumStore } from './stores/quorum.js';
import { Renewal } from './waiting/renewal.js';
import { WaitingRoom } from './waiting/room.js';
import type { LeaseStore } from './waiting/store.js';

/** What locks stand on whatever the database client is, as the command has none. `lookout`: a connection for looks. */
export function assembleLocks(options: ResolvedOptions, lookout: Query) {
  const emit = toEmit(options.onEvent);
  const store = storeOf(options, emit);
  const renewal = new Renewal(store);
  const room = new WaitingRoom(store, renewal, emit, { ...options, ...pollDelayOf(options) });
  const observed: Observed = {
    look: (recent) => list(store, lookout, recent),
    callers: () => room.waitingByKey(),
    query: lookout,
    redis: options.redis,
  };
  return { store, renewal, room, roomId: roomIdOf(options), emit, lookout, observed };
}

/** How long waiting processes may take to look at a key after a wake-up; milliseconds. */
const HEARD = 50;

/** Leases and queues, wherever the options say. */
export function storeOf(options: ResolvedOptions, emit: Emit): LeaseStore {
  if (options.memory) return options.memory.connect(options.keyPrefix, options.name);
  const redis = redisStoreOf(options, emit);
  return options.onRedisUnavailable === 'postgres' ? new FallbackStore(redis, emit) : redis;
}

function redisStoreOf(
  { redis, name, keyPrefix, commandTimeout, wake, pollInterval }: ResolvedOptions,
  emit: Emit,
): LeaseStore {
  const wakeUps = wake === 'pubsub';
  const store = (client: RedisLike, order: { offerTime?: number }, tell = emit) =>
    new RedisStore(
      client as unknown as RedisClient | ClusterClient,
      { keyPrefix, name, commandTimeout, wakeUps, ...order },
      tell,
    );
  const [only, ...others] = redis as [RedisLike, ...RedisLike[]];
  // Long enough for the process that is next to poll, even if it is late.
  if (others.length === 0) return store(only, wakeUps ? {} : { offerTime: Math.max(1_000, 2 * pollInterval) });
  // No offers with several nodes: each node might make its offer to another process.
  const nodes = redis.map((client, node) => store(client, { offerTime: 0 }, emitOf(node, emit)));
  return new QuorumStore(nodes, wakeUps ? HEARD : pollInterval, emit);
}

/**
 * Clients whose names in Redis have the same prefix share their leases, so they share a waiting room. Other clients do
 * not.
 */
function roomIdOf({ redis, memory, keyPrefix }: ResolvedOptions): number {
  const prefixes = memory
    ? [`memory ${memory.room} ${keyPrefix}`]
    : redis.map((client) => `${(client as unknown as RedisClient).options?.keyPrefix ?? ''}${keyPrefix}`);
  return createHash('sha256')
    .update(JSON.stringify([...new Set(prefixes)].sort()))
    .digest()
    .readInt32BE(0);
}

function pollDelayOf({ wake, pollInterval }: ResolvedOptions): { pollDelay?: () => number } {
  if (wake === 'pubsub') return {};
  // Between a tenth and all of it, so that processes that began together do not poll in step.
  return { pollDelay: () => pollInterval * (wake === 'poll' ? 0.1 + 0.9 * Math.random() : 1) };
}
