import { expect, test } from 'vitest';
import { check } from '../support/faults/check.js';
import { CONTROLS, PROVOKING, type Variant, WHOLE } from '../support/faults/controls.js';
import { Round } from '../support/faults/round.js';
import type { Stage } from '../support/faults/servers-and-workers.js';
import { storm } from '../support/faults/storm.js';
import { describeOnStage, lostUpdate, seed } from './suite.js';

/** Between two faults: what lets two holders in is to meet what they do, and that is short. */
const LONGEST_PAUSE = 150;
const HOLDS_FOR = 5_000;

/** The same run for all: its faults stop when `over` resolves. */
async function run<T>(stage: Stage, { name, ways, cripple }: Variant, over: (round: Round) => Promise<T>) {
  await cripple(stage);
  const round = await Round.begin(stage, { seed: `${name} ${seed}`, ways });
  let isOver = false;
  const storming = storm(stage, round, seed, () => isOver, PROVOKING, LONGEST_PAUSE);
  const result = await over(round).finally(() => {
    isOver = true;
  });
  await storming;
  await round.calm();
  return { result, history: await round.end() };
}

describeOnStage(`with faults that let two holders in at once (seed ${seed})`, (stage) => {
  // First, because the controls take away what it needs.
  test(`${WHOLE.name} loses nothing`, async () => {
    const { history } = await run(stage(), WHOLE, () => new Promise((resolve) => setTimeout(resolve, HOLDS_FOR)));
    expect(check(history)).toEqual([]);
  }, 60_000);

  test.each(CONTROLS.map((control) => [control.name, control] as const))(
    '%s is caught by the checker within a minute (control)',
    async (_, control) => {
      const since = performance.now();
      const { result, history } = await run(stage(), control, (round) => lostUpdate(stage(), round));
      console.log(`${control.name}: ${((performance.now() - since) / 1_000).toFixed(1)} s until ${result.what}`);
      expect(new Set(check(history).map(({ kind }) => kind))).toContain('lost-update');
    },
    90_000,
  );
});
