import {
  groupOfOne,
  groupsUnavailable,
  type RedisGroup,
  startCluster,
  startQuorum,
  startRedis,
  startSentinelGroup,
  startValkey,
  valkeyUnavailable,
  wallClock,
} from './servers/index.js';

/** A way in which Redis is run. */
export interface Topology {
  /** Why it cannot be started here, in a sentence; undefined if it can. */
  unavailable(): string | undefined;
  start(): Promise<RedisGroup>;
  /** How those who wait hear of a release there. */
  readonly wake?: 'poll';
}

const ANY_REDIS = () => undefined;
/** For the fault that makes it evict; without a limit it never does. */
const EVICTING = ['--maxmemory-policy', 'allkeys-random'];

const startOne = async () => groupOfOne(await startRedis({ args: EVICTING, env: wallClock }));

export const TOPOLOGIES = {
  single: { unavailable: ANY_REDIS, start: startOne },
  poll: { unavailable: ANY_REDIS, start: startOne, wake: 'poll' },
  valkey: { unavailable: valkeyUnavailable, start: async () => groupOfOne(await startValkey(EVICTING)) },
  sentinel: { unavailable: groupsUnavailable, start: startSentinelGroup },
  cluster: { unavailable: groupsUnavailable, start: startCluster },
  'quorum of 3': { unavailable: groupsUnavailable, start: () => startQuorum(3) },
  'quorum of 5': { unavailable: groupsUnavailable, start: () => startQuorum(5) },
} as const satisfies Record<string, Topology>;

export type TopologyName = keyof typeof TOPOLOGIES;
