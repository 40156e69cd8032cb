import { House } from '../house.js';
import type { Stage } from '../servers.js';
import type { DistanceVerbs } from '../workers/distance.worker.js';
import { withRemote } from '../workers/remote.js';
import { stamp } from './stamp.js';
import { summary } from './statistics.js';

/** Of every round trip, on its way to the server; timers make it up to one more. */
const DISTANCE = 1;

/** Runs `measure` in a house whose servers are a network away; `roundTrip` is what a PING takes, in ms. */
export function farAway<R>(stage: Stage, measure: (house: House, roundTrip: string) => Promise<R>): Promise<R> {
  return withRemote<DistanceVerbs, R>('./distance.worker.ts', stage.site, async (network) => {
    const house = new House(await network.ask('far', { ms: DISTANCE }));
    try {
      const times: number[] = [];
      for (let count = 0; count < 50; count++) {
        const start = stamp();
        await house.redis.ping();
        times.push(stamp() - start);
      }
      return await measure(house, summary(times).median.toFixed(1));
    } finally {
      await house.close();
    }
  });
}
