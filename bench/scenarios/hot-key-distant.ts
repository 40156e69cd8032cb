import { farAway } from '../measure/far-away.js';
import { heats } from '../measure/heats.js';
import { atOneKey } from './hot-key.js';
import type { Scenario } from './scenario.js';

const CALLERS = 64;

export const hotKeyDistant: Scenario = {
  name: 'hot-key-distant',
  about:
    'the burst of 64 callers of one process, with PostgreSQL and Redis a network away instead of on the same machine',
  run: (stage, run) =>
    farAway(stage, async (house, roundTrip) => {
      const all = await atOneKey(house, stage, run, run.size(CALLERS, 16));
      const title = `${CALLERS} callers of one process, ${roundTrip} ms from PostgreSQL and Redis`;
      return [await heats(title, run, all, { count: run.size(8, 1), budget: 30_000 })];
    }),
};
