import { askServer } from '../../servers/index.js';
import { type Fault, lasting, sudden } from '../fault.js';
import type { Stage } from '../servers-and-workers.js';
import { clockFaults } from './clocks.js';

/** To independent nodes: as many as the others can do without, and more. */
export const QUORUMS: readonly Fault[] = [
  restart('a minority killed and restarted empty', minority),
  restart('a majority killed and restarted empty', majority),
  freeze('a minority frozen', minority),
  freeze('a majority frozen', majority),
  sudden('FLUSHALL on a minority', 'redis', (stage) =>
    Promise.all(minority(stage).map(({ url }) => askServer(url, 'FLUSHALL'))),
  ),
  sudden('FLUSHALL on all nodes', 'redis', (stage) => stage.tellNodes('FLUSHALL')),
  sudden('SCRIPT FLUSH on all nodes', 'redis', (stage) => stage.tellNodes('SCRIPT', 'FLUSH')),
  lasting(
    'one worker cut off from a majority',
    'redis line',
    (stage, { lines }) => {
      for (const node of majority(stage)) lines.toNode(node).silence();
    },
    (stage, { lines }) => {
      for (const node of majority(stage)) lines.toNode(node).resume();
    },
  ),
  ...clockFaults('a minority', 'redis', minority),
  ...clockFaults('a majority', 'redis', majority),
];

/** The largest number of nodes without which the others are more than half. */
function minority({ group: { nodes } }: Stage) {
  return nodes.slice(0, Math.ceil(nodes.length / 2) - 1);
}

function majority({ group: { nodes } }: Stage) {
  return nodes.slice(0, Math.ceil(nodes.length / 2));
}

function restart(name: string, some: typeof minority): Fault {
  return lasting(
    name,
    'redis',
    (stage) => Promise.all(some(stage).map((node) => node.killHard())),
    (stage) => Promise.all(some(stage).map((node) => node.start())),
  );
}

function freeze(name: string, some: typeof minority): Fault {
  return lasting(
    name,
    'redis',
    (stage) => {
      for (const node of some(stage)) node.freeze();
    },
    (stage) => {
      for (const node of some(stage)) node.thaw();
    },
  );
}
