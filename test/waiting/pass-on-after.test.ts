import { expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate } from '../support/shop.js';
import { queueName, someKey } from './actors.js';
import { clock } from './stopped-clock.js';
import { direct, setStage } from './watched-redis.js';

// A busy machine may stop a process at any place. So time passes only where a test says so.
vi.mock('../../src/base/clock.js', async (original) => {
  const { stopped } = await import('./stopped-clock.js');
  return stopped(await original());
});

describeWithShop('the time for which a process keeps a key from others that wait', () => {
  const stage = setStage();

  /** The callers of two processes, each with a turn of so many milliseconds: whose turn it was. */
  async function turnsOf({ turn: duration, callers }: { turn: number; callers: number }): Promise<string> {
    const key = someKey();
    const actors = { A: direct({ passOnAfter: 50 }), B: direct({ passOnAfter: 50 }) };
    const order: string[] = [];
    const entered = gate();
    const come = (name: 'A' | 'B', other: 'A' | 'B') =>
      Array.from({ length: callers }, async () => {
        const turn = await actors[name].acquire(key);
        order.push(name);
        await entered.opened;
        // Who has just yielded has to get to its place first.
        const isQueued = async () =>
          actors[other].room.waitingByKey().get(key) === undefined || (await stage().admin.llen(queueName(key))) > 0;
        await eventually('the other process waits', isQueued);
        clock.now += duration;
        turn.end();
      });
    const all = come('A', 'B');
    await actors.A.store.answers.reach(1);
    all.push(...come('B', 'A'));
    entered.open();
    await Promise.all(all);
    return order.join('');
  }

  test.each([
    // The fourth begins at 45 ms.
    [15, 'AAAABBBBAAAABBBBAABB'],
    [49, 'AABBAABBAABBAABBAABB'],
    [50, 'ABABABABABABABABABAB'],
    [1_000, 'ABABABABABABABABABAB'],
  ])('is compared at the end of each turn: turns of %s ms', async (turn, order) => {
    expect(await turnsOf({ turn, callers: 10 })).toBe(order);
  });
});
