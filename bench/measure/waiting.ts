import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Contestant } from '../contestants/contestant.js';
import type { Stage } from '../servers.js';
import { type Remote, withRemote } from '../workers/remote.js';
import type { WaitersVerbs } from '../workers/waiters.worker.js';
import { CommandCounter, inWords, total } from './commands.js';
import { holding } from './holding.js';
import { Tally } from './tally.js';

/** A process may be so busy with waiting that it never answers; ms. */
const ANSWER = { within: 12_000 };
/** The holder's transaction has Prisma's 5 s; all is over before. */
const SETTLE = 1_000;

export interface Waited {
  readonly commandsPerSecond: number;
  readonly verbs: string;
  /** Shares of one core. */
  readonly cpu: number;
  readonly redisCpu: number;
  readonly heapPerCaller: number;
  /** Sessions in Postgres that are not idle, the holder's aside. */
  readonly connections: number;
  readonly gaveUp: number;
}

/**
 * Callers of one process who all wait for a key that another process holds; what they cost meanwhile, or nothing
 * where their process was too busy to say so.
 */
export async function waiting(
  stage: Stage,
  contestant: Contestant,
  callers: number,
  window: number,
): Promise<Waited | undefined> {
  return await withRemote<WaitersVerbs, Waited | undefined>('./waiters.worker.ts', stage.site, async (remote) => {
    const tally = await Tally.of(stage, contestant, 2);
    const { name } = contestant;
    await remote.ask('warmUp', { contestant: name, sale: tally.saleOf(1) });
    const before = await remote.ask('heap', null);
    const held = await holding(await stage.house.seller(contestant), tally.sale);
    try {
      await remote.ask('wait', { contestant: name, sale: tally.sale, callers }, ANSWER);
      await sleep(SETTLE);
      const cost = await spent(stage, remote, window);
      const connections = await busy(stage, contestant);
      const after = await remote.ask('heap', null, ANSWER);
      return { ...cost, connections, heapPerCaller: (after - before) / callers };
    } catch (error) {
      if (String(error).includes('within')) return undefined;
      throw error;
    } finally {
      // First those who wait: they would all have their turns.
      await remote.kill();
      await held.letGo();
    }
  });
}

interface Spent {
  readonly commandsPerSecond: number;
  readonly verbs: string;
  readonly cpu: number;
  readonly redisCpu: number;
  readonly stall: number;
  readonly gaveUp: number;
}

/** What a worker and Redis do for `window` ms. */
async function spent(stage: Stage, remote: Remote<WaitersVerbs>, window: number): Promise<Spent> {
  const counter = await CommandCounter.start(stage.site.redis);
  const redis = new Redis(stage.site.redis);
  try {
    await remote.ask('from', null, ANSWER);
    const cpuBefore = await cpuOf(redis);
    await counter.reset();
    const from = performance.now();
    await sleep(window);
    const counts = await counter.counts();
    const ms = performance.now() - from;
    const redisCpu = ((await cpuOf(redis)) - cpuBefore) * 1_000;
    const { cpu, stall, failed } = await remote.ask('since', null, ANSWER);
    return {
      commandsPerSecond: (total(counts) * 1_000) / ms,
      verbs: inWords(counts),
      cpu,
      redisCpu: redisCpu / ms,
      stall,
      gaveUp: failed,
    };
  } finally {
    counter.stop();
    redis.disconnect();
  }
}

/** Seconds of CPU that the server has used. */
async function cpuOf(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (field: string) => Number(new RegExp(`^${field}:([0-9.]+)`, 'm').exec(info)?.[1]);
  return seconds('used_cpu_user') + seconds('used_cpu_sys');
}

async function busy(stage: Stage, { shop }: Contestant): Promise<number> {
  const { rows } = await stage.admin(shop).query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM pg_stat_activity
     WHERE datname = current_database() AND usename <> current_user AND state <> 'idle'
     AND application_name <> $1`,
    [stage.house.name],
  );
  return rows[0]?.count ?? 0;
}
