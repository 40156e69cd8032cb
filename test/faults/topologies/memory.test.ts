import { expect, test } from 'vitest';
import { check } from '../../support/faults/check.js';
import { CONTROLS } from '../../support/faults/controls.js';
import type { Fault } from '../../support/faults/fault.js';
import { type Figures, figuresOf } from '../../support/faults/figures.js';
import { Round } from '../../support/faults/round.js';
import { storm } from '../../support/faults/storm.js';
import { FAULTS, FAULTS_OF_MEMORY, FAULTS_OF_THE_STORE } from '../../support/faults/table/index.js';
import { WAYS_IN_MEMORY } from '../../support/faults/ways/index.js';
import { CALLERS, describeOnStage, lostUpdate, seed } from '../suite.js';

/** How long the faults of each kind strike. */
const SECONDS = Number(process.env['FENCED_LOCK_SECONDS'] ?? 10);

/** What leaves Postgres and the lines to it alone. */
const OF_THE_PROCESS = [...FAULTS.workers, ...FAULTS.operators, ...FAULTS_OF_THE_STORE];

describeOnStage(
  'one process with a memory store',
  (stage) => {
    const underStorm = async (name: string, faults: readonly Fault[]): Promise<Figures> => {
      const round = await Round.begin(stage(), { seed: `${name}-${seed}`, callers: CALLERS, ways: WAYS_IN_MEMORY });
      const until = performance.now() + SECONDS * 1_000;
      await storm(stage(), round, seed, () => performance.now() > until, faults);
      await round.calm();
      const history = await round.end();
      const figures = figuresOf(history);
      const { operations, committed, told, unknown, untold, strikes, longestStall } = figures;
      console.log(JSON.stringify({ name, operations, committed, told, unknown, untold, strikes, longestStall }));
      expect(figures.violations).toEqual([]);
      expect(history.strikes.filter(({ missed }) => !missed).length).toBeGreaterThan(5);
      expect(history.entries.length).toBeGreaterThanOrEqual(CALLERS);
      return figures;
    };
    const timeout = SECONDS * 1_000 + 90_000;

    test(
      `that is frozen, held up, flushed or killed loses no update, and each outcome is known (seed ${seed})`,
      async () => {
        const { unknown } = await underStorm('process', OF_THE_PROCESS);
        expect(unknown).toEqual({ committed: 0, rolledBack: 0 });
      },
      timeout,
    );

    test(
      `loses no update under all faults together, no report is wrong, and everybody gets on (seed ${seed})`,
      async () => {
        await underStorm('all', FAULTS_OF_MEMORY);
      },
      timeout,
    );

    // At the end, because it takes away what the others need.
    test('loses updates by the same faults where the admission is switched off (control)', async () => {
      await CONTROLS[0]?.cripple(stage());
      // Two clients of one store: the callers of one client wait for each other in its own queue as well.
      const ways = ['$withLock, nothing fenced', '$withLock'] as const;
      const round = await Round.begin(stage(), { seed: `control-${seed}`, callers: CALLERS, ways });
      let isOver = false;
      const storming = storm(stage(), round, seed, () => isOver, OF_THE_PROCESS, 150);
      await lostUpdate(stage(), round).finally(() => {
        isOver = true;
      });
      await storming;
      expect(new Set(check(await round.end()).map(({ kind }) => kind))).toContain('lost-update');
    }, 90_000);
  },
  { topology: 'memory' },
);
