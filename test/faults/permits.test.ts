import { expect, test } from 'vitest';
import { permitName } from '../../src/base/permits.js';
import { namesOf } from '../../src/redis/names.js';
import { PERMITS, told, turns, workers } from '../promises/permits-at-work.js';
import { startCluster, startSentinelGroup } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';

const ROUNDS = Number(process.env['FENCED_LOCK_ROUNDS'] ?? 3);

for (const [name, start] of [
  ['Sentinel', startSentinelGroup],
  ['Cluster', startCluster],
] as const) {
  describeWithGroup(`permits on ${name}`, start, (group) => {
    test('never more than so many are at work, whatever becomes of the master and of a process', {
      timeout: 60_000 + ROUNDS * 20_000,
    }, async () => {
      const { key, all } = await workers(4, group().site);
      const [frozen, ...others] = all;
      const { lease, queue } = namesOf('fenced-lock:', permitName(key, 0));
      for (let round = 0; round < ROUNDS; round++) {
        await turns(frozen, 1);
        frozen.freeze();
        await turns(others[0], 10);
        // Its replica may not have heard of the last leases.
        const master = await group().ownerOf(lease);
        master.freeze();
        await turns(others[1], 10);
        master.thaw();
        frozen.thaw();
        await turns(frozen, 5);
        await expect.poll(() => group().isWhole()).toBe(true);
        const next = await group().ownerOf(queue);
        await next.restart();
        await turns(others[2], 5);
        await expect.poll(() => group().isWhole()).toBe(true);
      }
      const { most, committed } = await told(all);
      console.log(`${name}: ${committed} turns, at most ${most} at work`);
      expect(most).toBeGreaterThan(1);
      expect(most).toBeLessThanOrEqual(PERMITS);
    });
  });
}
