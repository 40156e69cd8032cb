import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { spent } from '../measure/waiting.js';
import type { Stage } from '../stage.js';
import { withRemote } from '../workers/remote.js';
import type { WaitersVerbs } from '../workers/waiters.worker.js';
import type { Run, Scenario } from './scenario.js';

const LEASE_TIME = 6_000;
/** For all of the leases to be had; ms. */
const HAD_WITHIN = 30_000;

export const renewal: Scenario = {
  name: 'renewal',
  about: 'what it costs one process to keep 1,000 and 10,000 leases alive',
  async run(stage, run) {
    const rows = [];
    for (const leases of run.size([1_000, 10_000], [500])) rows.push(await measure(stage, run, leases));
    return [{ title: `$withLock, leases of ${LEASE_TIME / 1_000} s`, note: NOTE, rows }];
  },
};

const NOTE =
  'Each lease is that of a $withLock: ten have a connection, the others wait for one and hold their lease meanwhile. ' +
  'Over more than a lease time, so that what is not renewed is seen to be gone. Stall: the longest time that a timer was late.';

async function measure(stage: Stage, run: Run, leases: number) {
  run.step(`${leases} leases`);
  const redis = new Redis(stage.site.redis);
  try {
    return await withRemote<WaitersVerbs, Record<string, number | string>>(
      './waiters.worker.ts',
      stage.site,
      async (remote) => {
        const heapBefore = await remote.ask('heap', null);
        const from = performance.now();
        const keys = Array.from({ length: leases }, (_, place) => `renewal:${leases}:${place}`);
        await remote.ask('hold', { keys, leaseTime: LEASE_TIME });
        while ((await present(redis, leases)) < leases) {
          if (performance.now() - from > HAD_WITHIN) throw new Error(`not all of ${leases} leases were had`);
          await sleep(50);
        }
        const had = performance.now() - from;
        const cost = await spent(stage, remote, run.size(LEASE_TIME * 1.2, 2_500));
        const left = await present(redis, leases);
        const heap = await remote.ask('heap', null);
        return {
          leases,
          'had within, ms': had,
          'Redis commands/s': cost.commandsPerSecond,
          'CPU, % of a core': cost.cpu * 100,
          'Redis CPU, %': cost.redisCpu * 100,
          'stall, ms': cost.stall,
          'heap KiB per lease': (heap - heapBefore) / leases / 1_024,
          'still held': left,
          lost: cost.gaveUp,
          commands: cost.verbs,
        };
      },
    );
  } finally {
    redis.disconnect();
  }
}

/** Leases in Redis, each a key whose name ends with the lock's. */
async function present(redis: Redis, leases: number): Promise<number> {
  const names = new Set<string>();
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `*renewal:${leases}:*`, 'COUNT', 5_000);
    cursor = next;
    for (const key of keys) names.add(key);
  } while (cursor !== '0');
  return names.size;
}
