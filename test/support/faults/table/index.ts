import type { TopologyName } from '../../topologies.js';
import type { Fault } from '../fault.js';
import { POSTGRES_CLOCKS, REDIS_CLOCKS } from './clocks.js';
import { FAILOVERS, RESHARDING } from './failovers.js';
import { LINES } from './lines.js';
import { QUORUMS } from './quorums.js';
import { POSTGRES, REDIS } from './servers.js';
import { CHAIN_FAULTS, POSTGRES_STEP_FAULTS, STEP_FAULTS } from './steps.js';
import { FAULTS_OF_THE_STORE, OPERATORS, WORKERS } from './workers.js';

export { FAULTS_OF_THE_STORE };

/** What strikes one Redis and all that is around it, by what it hurts. */
export const FAULTS = {
  workers: WORKERS,
  operators: OPERATORS,
  lines: LINES,
  Redis: REDIS,
  Postgres: POSTGRES,
  clocks: [...REDIS_CLOCKS, ...POSTGRES_CLOCKS],
  steps: STEP_FAULTS,
  chains: CHAIN_FAULTS,
} as const satisfies Record<string, readonly Fault[]>;

export const ALL_FAULTS: readonly Fault[] = Object.values(FAULTS).flat();

/** What strikes where there are several nodes, besides what is done to them. */
const AROUND_NODES = [
  ...WORKERS,
  ...OPERATORS,
  ...POSTGRES,
  ...POSTGRES_CLOCKS,
  ...LINES.filter(({ place }) => place === 'postgres line'),
  ...POSTGRES_STEP_FAULTS,
];

/** What is done to the nodes of each topology, and to the lines to them. */
export const FAULTS_OF_NODES = {
  single: REDIS,
  poll: REDIS,
  valkey: REDIS,
  sentinel: FAILOVERS,
  cluster: [...FAILOVERS, RESHARDING],
  'quorum of 3': QUORUMS,
  'quorum of 5': QUORUMS,
} as const satisfies Record<TopologyName, readonly Fault[]>;

/** All that may strike one process with a memory store. */
export const FAULTS_OF_MEMORY: readonly Fault[] = [...AROUND_NODES, ...FAULTS_OF_THE_STORE];

/** All that may strike there. */
export function faultsOf(topology: TopologyName | 'memory'): readonly Fault[] {
  if (topology === 'memory') return FAULTS_OF_MEMORY;
  const ofNodes: readonly Fault[] = FAULTS_OF_NODES[topology];
  return ofNodes === REDIS ? ALL_FAULTS : [...AROUND_NODES, ...ofNodes];
}
