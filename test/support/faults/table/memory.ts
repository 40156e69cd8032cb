import { type Fault, sudden } from '../fault.js';

/** To leases in the memory of one process. What ends with the process, and what holds it up, is in workers.ts. */
export const FAULTS_OF_THE_STORE: readonly Fault[] = [
  sudden('memory store flushed', 'worker', async (_, actor) => actor.tell({ type: 'flush' })),
];
