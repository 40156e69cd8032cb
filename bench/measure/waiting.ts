import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Contestant } from '../contestants/contestant.js';
import type { Stage } from '../stage.js';
import { withRemotes } from '../workers/remote.js';
import type { WaitersVerbs } from '../workers/waiters.worker.js';
import { CommandCounter, inWords, total } from './commands.js';
import { Tally } from './tally.js';

/** A worker that is busy with waiting itself may be late, and some never answer; ms. */
const ANSWER_WITHIN = 12_000;
const SETTLE = 1_000;

export interface Waited {
  readonly commandsPerSecond: number;
  readonly verbs: string;
  /** Shares of one core. */
  readonly cpu: number;
  readonly redisCpu: number;
  readonly heapPerCaller: number;
  /** Sessions of the application in Postgres that are not idle, the holder's aside. */
  readonly connections: number;
  readonly gaveUp: number;
}

/**
 * Callers of one process who all wait for a key that somebody else holds; what they cost meanwhile, or nothing where
 * their process was too busy to say so.
 */
export async function waiting(
  stage: Stage,
  contestant: Contestant,
  callers: number,
  window: number,
): Promise<Waited | undefined> {
  const tally = await Tally.of(stage, contestant, 2);
  const holder = await stage.house.seller(contestant);
  let letGo: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let begun: () => void = () => {};
  const began = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const sold = holder.sell({
    ...tally.sale,
    began: () => {
      begun();
      return held;
    },
  });
  // Postgres' own limits or Prisma's timeout may end the holder's transaction before we do.
  const settled = sold.catch(() => {});
  await began;
  const counter = await CommandCounter.start(stage.site.redis);
  const redis = new Redis(stage.site.redis);
  try {
    return await withRemotes<WaitersVerbs, Waited | undefined>(
      './waiters.worker.ts',
      stage.site,
      1,
      async ([remote]) => {
        if (remote === undefined) return undefined;
        const within = { within: ANSWER_WITHIN };
        const { name } = contestant;
        await remote.ask('warmUp', { contestant: name, sale: tally.saleOf(1) }, within);
        const before = await remote.ask('heap', null, within);
        try {
          await remote.ask('wait', { contestant: name, sale: tally.sale, callers }, within);
          await sleep(SETTLE);
          await remote.ask('from', null, within);
          await counter.reset();
          const [redisBefore, from] = [await cpuOf(redis), performance.now()];
          await sleep(window);
          const [counts, redisAfter, ms] = [await counter.counts(), await cpuOf(redis), performance.now() - from];
          const connections = await busy(stage, contestant);
          const { cpu, failed } = await remote.ask('since', null, within);
          const after = await remote.ask('heap', null, within);
          // The two looks at Redis' CPU are ours.
          const { info: _, ...theirs } = counts;
          return {
            commandsPerSecond: (total(theirs) * 1_000) / ms,
            verbs: inWords(theirs),
            cpu,
            redisCpu: ((redisAfter - redisBefore) * 1_000) / ms,
            heapPerCaller: (after - before) / callers,
            connections: connections - 1,
            gaveUp: failed,
          };
        } catch (error) {
          if (String(error).includes('within')) return undefined;
          throw error;
        }
      },
    );
  } finally {
    letGo();
    counter.stop();
    redis.disconnect();
    await settled;
  }
}

/** Seconds of CPU that the server has used. */
export async function cpuOf(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (field: string) => Number(new RegExp(`^${field}:([0-9.]+)`, 'm').exec(info)?.[1]);
  return seconds('used_cpu_user') + seconds('used_cpu_sys');
}

async function busy(stage: Stage, { shop }: Contestant): Promise<number> {
  const { rows } = await stage.admin(shop).query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM pg_stat_activity
     WHERE datname = current_database() AND usename <> current_user AND state <> 'idle'`,
  );
  return rows[0]?.count ?? 0;
}
