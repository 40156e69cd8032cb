import type { Mutant } from './mutant.js';

const file = 'src/redis/nodes.ts';
const sentinel = ['test/redis/sentinel'];

export const NODES: readonly Mutant[] = [
  {
    name: 'nodes: a client that was cut short stays ended',
    file,
    change: [["    if (this.#cutShort && this.#redis.status === 'end') this.#redis.connect().catch(() => {});\n", '']],
    tests: sentinel,
    only: 'ends for good',
    why: 'After a failover that process would never get a lock again.',
  },
  {
    name: 'nodes: a client that its owner has ended is connected again',
    file,
    change: [['this.#connecting && manuallyClosing !== true', 'this.#connecting']],
    tests: sentinel,
    only: 'stays so',
    why: 'The process would not end.',
  },
];
