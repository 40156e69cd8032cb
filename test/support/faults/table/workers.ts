import { setTimeout as sleep } from 'node:timers/promises';
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
  {
    name: 'event loop stalled',
    place: 'worker',
    async strike(_, actor, ms) {
      actor.tell({ type: 'stall', ms });
      await sleep(ms);
      return true;
    },
  },
  moved('wall clock an hour ahead', HOUR),
  moved('wall clock an hour behind', -HOUR),
];
