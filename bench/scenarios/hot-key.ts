import type { House } from '../house.js';
import { alone, burst } from '../measure/burst.js';
import { type Heat, heats } from '../measure/heats.js';
import { Tally } from '../measure/tally.js';
import { warmUp } from '../measure/warm-up.js';
import type { Stage } from '../servers.js';
import type { Run, Scenario } from './scenario.js';

/** Sales of the one caller who is the yardstick. */
const ALONE = 64;

export const hotKey: Scenario = {
  name: 'hot-key',
  about: 'a burst on one key: 8, 64 and 512 callers of one process come at once, each with one sale',
  async run(stage, run) {
    const sizes = [
      [8, { count: run.size(12, 1), budget: 10_000 }],
      [run.size(64, 16), { count: run.size(8, 1), budget: 14_000 }],
      [run.size(512, 32), { count: run.size(3, 1), budget: 12_000 }],
    ] as const;
    const tables = [];
    for (const [callers, limits] of sizes) {
      const title = `${callers} callers of one process`;
      tables.push(await heats(title, run, await atOneKey(stage.house, stage, run, callers), limits));
    }
    return tables;
  },
};

/** Of each contestant a burst of so many callers from `house`, at a key of its own. */
export async function atOneKey(house: House, stage: Stage, run: Run, callers: number): Promise<Heat[]> {
  const all: Heat[] = [];
  for (const contestant of run.contestants) {
    const seller = await house.seller(contestant);
    const tally = await Tally.of(stage, contestant);
    run.step(`${contestant.name} warms up`);
    tally.add({ ok: await warmUp(seller, tally.sale, run.warmUp), failed: {} });
    all.push({
      contestant,
      tally,
      isHere: true,
      alone: () => alone(seller, tally.sale, run.size(ALONE, 8)),
      burst: () =>
        burst(
          seller,
          Array.from({ length: callers }, () => tally.sale),
        ),
    });
  }
  return all;
}
