import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.js';
import { Random } from './random.js';
import type { Round } from './round.js';
import { schedule } from './schedule.js';
import type { Stage } from './servers-and-workers.js';
import { ALL_FAULTS } from './table/index.js';

/** Faults together, by the schedule of a seed, until it is `over`. Resolves when the last one has healed. */
export async function storm(
  stage: Stage,
  round: Round,
  seed: string,
  over: () => boolean,
  faults: readonly Fault[] = ALL_FAULTS,
  longestPause?: number,
): Promise<void> {
  const { actors } = stage;
  const healing: Array<Promise<unknown>> = [];
  for (const { fault, actor, pause, lasts } of schedule(new Random(seed), faults, actors.length, longestPause)) {
    await sleep(pause);
    if (over()) break;
    const target = actors[actor];
    if (target) healing.push(round.strike(fault, target, lasts));
  }
  await Promise.all(healing);
}
