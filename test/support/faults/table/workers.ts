import { type Fault, lasting, sudden } from '../fault.js';

const HOUR = 3_600_000;

const moved = (name: string, ms: number): Fault =>
  lasting(
    name,
    'worker',
    (_, actor) => actor.tell({ type: 'move clock', ms }),
    (_, actor) => actor.tell({ type: 'move clock', ms: 0 }),
  );

/** To a process, at any moment of its work; at a certain one: steps.ts. */
export const WORKERS: readonly Fault[] = [
  lasting(
    'worker frozen',
    'worker',
    (_, actor) => actor.worker.freeze(),
    (_, actor) => actor.worker.thaw(),
  ),
  sudden('worker killed', 'worker', async (_, actor) => {
    await actor.die();
    await actor.enter();
  }),
  lasting(
    'event loop stalled',
    'worker',
    (_, actor, ms) => actor.tell({ type: 'stall', ms }),
    () => {},
  ),
  moved('wall clock an hour ahead', HOUR),
  moved('wall clock an hour behind', -HOUR),
];

/** To leases in the memory of one process. What ends with the process, and what holds it up, is above. */
export const FAULTS_OF_THE_STORE: readonly Fault[] = [
  sudden('memory store flushed', 'worker', async (_, actor) => actor.tell({ type: 'flush' })),
];

const FORCED_WITHIN = 5_000;

/** By somebody who means well: as hard as a fault for whoever has the key. */
export const OPERATORS: readonly Fault[] = [
  {
    name: 'forceRelease by an operator',
    place: 'operator',
    async strike(_, actor) {
      actor.tell({ type: 'force release' });
      return await actor.answers('forced', FORCED_WITHIN);
    },
  },
];
