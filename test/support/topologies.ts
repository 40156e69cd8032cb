import {
  groupsUnavailable,
  type RedisGroup,
  startCluster,
  startOne,
  startQuorum,
  startSentinelGroup,
  valkeyUnavailable,
} from './servers/index.js';

/** A way in which Redis is run. */
export interface Topology {
  /** Why it cannot be started here, in a sentence; undefined if it can. */
  unavailable(): string | undefined;
  start(): Promise<RedisGroup>;
  /** How those who wait hear of a release there. */
  readonly wake?: 'poll';
}

export const TOPOLOGIES = {
  single: { unavailable: groupsUnavailable, start: () => startOne() },
  poll: { unavailable: groupsUnavailable, start: () => startOne(), wake: 'poll' },
  valkey: { unavailable: valkeyUnavailable, start: () => startOne(['valkey-server']) },
  sentinel: { unavailable: groupsUnavailable, start: startSentinelGroup },
  cluster: { unavailable: groupsUnavailable, start: startCluster },
  'quorum of 3': { unavailable: groupsUnavailable, start: () => startQuorum(3) },
  'quorum of 5': { unavailable: groupsUnavailable, start: () => startQuorum(5) },
} as const satisfies Record<string, Topology>;

export type TopologyName = keyof typeof TOPOLOGIES;
