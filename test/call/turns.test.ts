import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('turns', () => {
  const shop = new Shop();

  interface Call {
    readonly asked: number;
    began?: number;
    ended?: number;
  }

  /** How long those had the key who came after this call and began before it, one by one. */
  function overtakersOf({ asked, began = Number.NaN }: Call, calls: readonly Call[]): number[] {
    const overtakers = calls.filter((other) => other.asked > asked && (other.began as number) < began);
    return overtakers.map((other) => (other.ended as number) - (other.began as number));
  }

  const sum = (times: readonly number[]) => times.reduce((all, time) => all + time, 0);

  test.each([5, 100])('are not kept from processes that came first by a busy one: work of %i ms', async (time) => {
    const { key } = await shop.product(1);
    const [busy, ...others] = [0, 1, 2].map(() => shop.client().prisma) as [ShopClient, ShopClient, ShopClient];
    const calls: Call[] = [];
    const over = new AbortController();
    const call = (client: ShopClient, more?: Promise<void>) => {
      const made: Call = { asked: performance.now() };
      calls.push(made);
      const work = async () => {
        made.began = performance.now();
        await Promise.all([sleep(time), more]);
        made.ended = performance.now();
      };
      const had = client.$withLock(key, work, { signal: over.signal, waitTime: 25_000 });
      had.catch(() => {});
      return had;
    };
    const allWait = gate();
    const all = [call(busy, allWait.opened)];
    await eventually('it has the key', async () => calls[0]?.began !== undefined, { every: 1 });
    for (const [index, other] of others.entries()) {
      all.push(call(other));
      await shop.queued(key, index + 1);
    }
    allWait.open();
    const served = Promise.all(all).then(() => over.abort());
    // More than it gets on with, until the others have had their turns.
    for (let callers = Math.max(6, 150 / time); callers > 0 && !over.signal.aborted; callers--) {
      all.push(call(busy));
      await sleep(0.4 * time);
    }
    await served;
    await Promise.allSettled(all);
    for (const each of calls) {
      const overtakers = overtakersOf(each, calls);
      const longest = overtakers.toSorted((one, other) => other - one).slice(0, 2);
      expect(sum(overtakers)).toBeLessThanOrEqual(100 + sum(longest));
    }
  });
});
