import { expect, test } from 'vitest';
import { CALLERS, describeOnStage, seed } from '../faults/suite.js';
import { eventually } from '../support/eventually.js';
import { check } from '../support/faults/check.js';
import { figuresOf } from '../support/faults/figures.js';
import { Round } from '../support/faults/round.js';
import { storm } from '../support/faults/storm.js';
import { FAULTS } from '../support/faults/table/index.js';

/** How many are to be committed under faults. */
const UPDATES = Number(process.env['FENCED_LOCK_UPDATES'] ?? 300);
/** Between two faults, fewer where many updates are wanted; milliseconds. */
const LONGEST_PAUSE = Math.min(UPDATES * 5, 5_000);
/** With faults and all; milliseconds. */
const LONGEST_UPDATE = 200;

/** Redis killed and flushed, backends terminated, Postgres restarted, processes frozen and killed. */
const STRIKING = [...FAULTS.Redis, ...FAULTS.Postgres, ...FAULTS.workers];

describeOnStage(
  'Prisma in one process, Kysely in another and pg in a third, on one key and one row',
  (stage) => {
    test(
      `lose no update of ${UPDATES} under faults (seed ${seed})`,
      async () => {
        const round = await Round.begin(stage(), { seed: `together-${seed}`, keys: 1, ways: ['$withLock'] });
        const since = performance.now();
        let isOver = false;
        const storming = storm(stage(), round, seed, () => isOver, STRIKING, LONGEST_PAUSE);
        const [product] = round.products;
        const committed = async () => {
          const { rows } = await stage().database.query<{ n: number }>(
            'SELECT count(*)::int AS n FROM "Ledger" WHERE key = $1',
            [product?.key],
          );
          return (rows[0]?.n ?? 0) >= UPDATES;
        };
        const patience = { within: UPDATES * LONGEST_UPDATE + 30_000, every: 500 };
        await eventually('all are committed', () => committed().catch(() => false), patience).finally(() => {
          isOver = true;
        });
        await storming;
        await round.calm();
        const history = await round.end();
        const { operations, committed: kept, told, unknown, strikes, longestStall } = figuresOf(history);
        const seconds = Math.round((performance.now() - since) / 1_000);
        console.log(JSON.stringify({ seed, seconds, operations, kept, told, unknown, strikes, longestStall }));
        expect(check(history)).toEqual([]);
        expect(history.entries.length).toBeGreaterThanOrEqual(UPDATES + CALLERS);
        expect(history.strikes.filter(({ missed }) => !missed).length).toBeGreaterThan(3);
      },
      UPDATES * LONGEST_UPDATE + 90_000,
    );
  },
  { guard: true, faces: ['prisma', 'kysely', 'pg'] },
);
