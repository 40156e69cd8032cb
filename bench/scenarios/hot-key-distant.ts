import { House } from '../house.js';
import { heats } from '../measure/heats.js';
import { stamp } from '../measure/stamp.js';
import { summary } from '../measure/statistics.js';
import type { DistanceVerbs } from '../workers/distance.worker.js';
import { withRemote } from '../workers/remote.js';
import { atOneKey } from './hot-key.js';
import type { Scenario } from './scenario.js';

const CALLERS = 64;
/** Of every round trip, on its way to the server; timers make it up to one more. */
const DISTANCE = 1;

export const hotKeyDistant: Scenario = {
  name: 'hot-key-distant',
  about:
    'the burst of 64 callers of one process, with PostgreSQL and Redis a network away instead of on the same machine',
  run: (stage, run) =>
    withRemote<DistanceVerbs, [Awaited<ReturnType<typeof heats>>]>(
      './distance.worker.ts',
      stage.site,
      async (network) => {
        const house = new House(await network.ask('far', { ms: DISTANCE }));
        try {
          const all = await atOneKey(house, stage, run, run.size(CALLERS, 16));
          const trip = (await roundTrip(house)).toFixed(1);
          const title = `${CALLERS} callers of one process, ${trip} ms from PostgreSQL and Redis`;
          return [await heats(title, run, all, { count: run.size(8, 1), budget: 30_000 })];
        } finally {
          await house.close();
        }
      },
    ),
};

async function roundTrip({ redis }: House): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < 50; count++) {
    const start = stamp();
    await redis.ping();
    times.push(stamp() - start);
  }
  return summary(times).median;
}
