import type { Contestant } from '../contestants/contestant.js';
import { bareTransaction, withLockAlone } from '../contestants/index.js';
import { PERMITS } from '../contestants/permits.js';
import { alone, burst } from '../measure/burst.js';
import { type Heat, heats } from '../measure/heats.js';
import { Tally } from '../measure/tally.js';
import { warmUp } from '../measure/warm-up.js';
import type { Stage } from '../servers.js';
import type { Run, Scenario } from './scenario.js';

/** Sales of the one caller who is the yardstick. */
const ALONE = 64;

export const permits: Scenario = {
  name: 'permits',
  about:
    'a burst of 64 callers of one process, each with a row of its own, of whom 1, 4 and 16 may be at work at a time',
  async run(stage, run) {
    const tables = [];
    for (const [number, contestants] of PERMITS) {
      const all = number === 1 ? [bareTransaction, withLockAlone, ...contestants] : [bareTransaction, ...contestants];
      const limits = { count: run.size(8, 1), budget: 10_000 };
      tables.push(await heats(`At most ${number} at work`, run, await ofAll(all, stage, run), limits));
    }
    return tables;
  },
};

async function ofAll(contestants: readonly Contestant[], stage: Stage, run: Run): Promise<Heat[]> {
  const callers = run.size(64, 8);
  const heatOf = async (contestant: Contestant): Promise<Heat> => {
    const seller = await stage.house.seller(contestant);
    const tally = await Tally.of(stage, contestant, callers);
    // A lock has one key for all of them.
    const sales = Array.from({ length: callers }, (_, index) => ({ ...tally.saleOf(index), key: tally.key }));
    run.step(`${contestant.name} warms up`);
    tally.add({ ok: await warmUp(seller, tally.sale, run.warmUp), failed: {} });
    return {
      contestant,
      tally,
      isHere: true,
      alone: () => alone(seller, tally.sale, run.size(ALONE, 8)),
      burst: () => burst(seller, sales),
    };
  };
  const all: Heat[] = [];
  for (const contestant of contestants) all.push(await heatOf(contestant));
  return all;
}
