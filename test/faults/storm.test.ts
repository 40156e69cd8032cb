import { describe, expect, test } from 'vitest';
import { check } from '../support/faults/check.js';
import { Random } from '../support/faults/random.js';
import { Round } from '../support/faults/round.js';
import { schedule } from '../support/faults/schedule.js';
import type { StageOptions } from '../support/faults/servers-and-workers.js';
import { storm } from '../support/faults/storm.js';
import { ALL_FAULTS } from '../support/faults/table/index.js';
import { CALLERS, describeOnStage, seed } from './suite.js';

const LASTS = 10_000;

test('a seed repeats its schedule, and another one has another', () => {
  const first20 = (from: number) => {
    const faults = schedule(new Random(from), ALL_FAULTS, 3);
    return Array.from({ length: 20 }, () => faults.next().value);
  };
  expect(first20(7)).toEqual(first20(7));
  expect(first20(7)).not.toEqual(first20(8));
});

// The other suites have no guard, and a pool.
describe.each([
  ['with the guard of the database', { guard: true }],
  ['over tables without a fence', { fenced: false }],
  ['with an adapter that has no pool of pg', { guard: true, pooled: false }],
  ['over plain pg', { guard: true, faces: ['pg'] }],
] satisfies [string, StageOptions][])('all faults together', (name, options) => {
  describeOnStage(
    name,
    (stage) => {
      test(`no update is lost, no report is wrong, and everybody gets on (seed ${seed})`, async () => {
        const round = await Round.begin(stage(), { seed: `storm-${seed}` });
        const until = performance.now() + LASTS;
        await storm(stage(), round, seed, () => performance.now() > until);
        await round.calm();
        const history = await round.end();
        expect(check(history)).toEqual([]);
        expect(history.strikes.filter(({ missed }) => !missed).length).toBeGreaterThan(5);
        // What the calm at the end alone has brought.
        expect(history.entries.length).toBeGreaterThanOrEqual(CALLERS);
      }, 90_000);
    },
    options,
  );
});
