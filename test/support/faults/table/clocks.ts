import { moveClock, type RedisServer, wallClocksUnavailable } from '../../servers/index.js';
import { type Fault, lasting } from '../fault.js';
import type { Stage } from '../servers-and-workers.js';

const HOUR = 3_600_000;

/** The wall clock of servers is set, and set right again after a while: a jump each way. */
export function clockFaults(
  whose: string,
  place: 'redis' | 'postgres',
  serversOf: (stage: Stage) => readonly Pick<RedisServer, 'dir'>[],
): Fault[] {
  const move = (ms: number) => (stage: Stage) => {
    for (const server of serversOf(stage)) moveClock(server, ms);
  };
  return [['ahead', HOUR] as const, ['behind', -HOUR] as const].map(([direction, ms]) => ({
    ...lasting(`wall clock of ${whose} an hour ${direction}`, place, move(ms), move(0)),
    unavailable: wallClocksUnavailable,
  }));
}

export const REDIS_CLOCKS = clockFaults('Redis', 'redis', ({ redis }) => [redis]);
export const POSTGRES_CLOCKS = clockFaults('Postgres', 'postgres', ({ postgres }) => [postgres]);
