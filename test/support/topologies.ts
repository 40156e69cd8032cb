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
} from './servers/index.js';

/** A way in which Redis is run. */
export interface Topology {
  /** Why it cannot be started here, in a sentence; undefined if it can. */
  unavailable(): string | undefined;
  start(): Promise<RedisGroup>;
}

const ANY_REDIS = () => undefined;
/** For the fault that makes it evict; without a limit it never does. */
const EVICTING = ['--maxmemory-policy', 'allkeys-random'];

export const TOPOLOGIES = {
  single: { unavailable: ANY_REDIS, start: async () => groupOfOne(await startRedis({ args: EVICTING })) },
  valkey: { unavailable: valkeyUnavailable, start: async () => groupOfOne(await startValkey(EVICTING)) },
  sentinel: { unavailable: groupsUnavailable, start: startSentinelGroup },
  cluster: { unavailable: groupsUnavailable, start: startCluster },
  'quorum of 3': { unavailable: groupsUnavailable, start: () => startQuorum(3) },
  'quorum of 5': { unavailable: groupsUnavailable, start: () => startQuorum(5) },
} as const satisfies Record<string, Topology>;

export type TopologyName = keyof typeof TOPOLOGIES;
