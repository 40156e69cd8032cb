import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Burst } from '../../bench/measure/burst.js';
import { CommandCounter } from '../../bench/measure/commands.js';
import { fairness } from '../../bench/measure/fairness.js';
import { inTurn } from '../../bench/measure/interleave.js';
import { describeWithRedis } from '../support/redis-suite.js';

describeWithRedis('the counter of commands', (redis) => {
  test('counts what was sent since the reset, and not what a script does', async () => {
    const client = new Redis(redis().url);
    onTestFinished(() => client.disconnect());
    const counter = await CommandCounter.start(redis().url);
    onTestFinished(() => counter.stop());
    await client.set('before', '] "quoted\r\n');
    await counter.reset();
    await client.eval("redis.call('SET', KEYS[1], '1'); return redis.call('INCR', KEYS[1])", 1, 'key');
    await client.get('lua');
    await client.get('lua');
    expect(await counter.counts()).toEqual({ eval: 1, get: 2 });
  });
});

describe('fairness', () => {
  /** A letter is a turn, and says of which process; asked for in the order of their beginning. */
  const bursts = (turns: string): Burst[] =>
    [...new Set(turns)].map((name) => {
      const own = [...turns].flatMap((turn, at) => (turn === name ? [at] : []));
      return { start: 0, end: 0, ok: own.length, failed: {}, turns: own.map((at, caller) => ({ caller, at })) };
    });

  test('processes that take turns have their share of every window', () => {
    expect(fairness(bursts('ABABABAB'), 4)).toEqual({ leastShare: 1, windows: 4, longestRun: 1, outOfOrder: 0 });
  });

  test('a process that is kept waiting for a window has none of it', () => {
    expect(fairness(bursts('BAAAAABB'), 4)).toMatchObject({ leastShare: 0, longestRun: 5 });
  });

  test('what comes after one process has no caller left is not counted', () => {
    expect(fairness(bursts('ABABBBBB'), 2)).toMatchObject({ leastShare: 1, windows: 2, longestRun: 1 });
  });

  test('a turn that was asked for earlier and begins later is out of order', () => {
    const [burst] = bursts('AAAA') as [Burst];
    const turns = [0, 2, 1, 3].map((caller, at) => ({ caller, at }));
    expect(fairness([{ ...burst, turns }], 2).outOfOrder).toBe(0.25);
  });
});

describe('the order of the contestants', () => {
  test.each([1, 2, 3, 4, 5, 6, 9])(
    'of %i has each once in a round, and each behind each other one equally often',
    (count) => {
      const all = Array.from({ length: count }, (_, index) => index);
      const followed = new Map<string, number>();
      for (let round = 0; round < 2 * count; round++) {
        const order = inTurn(all, round);
        expect([...order].sort((one, other) => one - other)).toEqual(all);
        order.slice(1).forEach((one, index) => {
          const pair = `${order[index]} ${one}`;
          followed.set(pair, (followed.get(pair) ?? 0) + 1);
        });
      }
      expect(followed.size).toBe(count * (count - 1));
      expect(new Set(followed.values())).toEqual(new Set(count === 1 ? [] : [2]));
    },
  );
});
