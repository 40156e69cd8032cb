import { expect, test, vi } from 'vitest';
import { LockTimeoutError } from '../../src/base/errors.js';
import { LocalQueue } from '../../src/lease/queue.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { describeWithShop, gate } from '../support/shop.js';
import { leaseName, someKey, Tally, turnOfLoop } from './actors.js';
import { direct, expectNothingLeft, setStage } from './stage.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

describeWithShop('the local queue', () => {
  const stage = setStage();

  test('callers of one process get the lease in the order in which they came', async () => {
    const [holder, actor] = [direct(), direct()];
    const key = someKey();
    const first = await holder.acquire(key);
    const order: number[] = [];
    const callers = Array.from({ length: 20 }, async (_, index) => {
      const held = await actor.acquire(key);
      order.push(index);
      await actor.release(held);
    });
    await actor.store.answers.reach(2);
    await holder.release(first);
    await Promise.all(callers);
    expect(order).toEqual(Array.from({ length: 20 }, (_, index) => index));
  });

  test('a caller that gives up at the very moment it is called passes the turn on', async () => {
    const queue = new LocalQueue();
    const first = await queue.enter('stock:1', async () => {});
    const leaving = gate();
    const gone = queue.enter('stock:1', () => leaving.opened);
    const next = queue.enter('stock:1', () => gate().opened);
    leaving.open();
    first?.leave();
    expect(await gone).toBeUndefined();
    (await next)?.leave();
    expect(await queue.enter('stock:1', async () => {})).toBeDefined();
  });

  test('leaving twice calls one caller, not two', async () => {
    const queue = new LocalQueue();
    const first = await queue.enter('stock:1', async () => {});
    const second = queue.enter('stock:1', () => gate().opened);
    void queue.enter('stock:1', () => gate().opened);
    first?.leave();
    first?.leave();
    await second;
    await turnOfLoop();
    expect(queue.waiting('stock:1')).toBe(1);
  });

  test('a contender that fails lets the next caller of its process go on', async () => {
    const actor = direct();
    const [holder, key] = [direct(), someKey()];
    const first = await holder.acquire(key);
    const failing = actor.acquire(key, { waitTime: 100 });
    const next = actor.acquire(key);
    await expect(failing).rejects.toBeInstanceOf(LockTimeoutError);
    await holder.release(first);
    await actor.release(await next);
  });

  test('300 callers of one process wait for one key and send Redis nothing: one of them looks, twice', async () => {
    const [holder, actor] = [direct(), direct()];
    const key = someKey();
    const first = await holder.acquire(key);
    const before = (await stage().monitor.about(key)).length;
    const held = new Tally();
    const callers = Array.from({ length: 300 }, async () => {
      const mine = await actor.acquire(key);
      held.add();
      await actor.release(mine);
    });
    await actor.store.answers.reach(2);
    expect(actor.queue.waiting(key)).toBe(299);
    // What polls gives no event: it needs some time in which to be seen.
    await new Promise((resolve) => setTimeout(resolve, 700));
    const sent = (await stage().monitor.about(key)).slice(before);
    expect(sent.map(([verb, first]) => (verb === 'evalsha' ? first : verb))).toEqual([
      scripts.acquire.sha1,
      'subscribe',
      scripts.acquire.sha1,
    ]);
    expect(held.count).toBe(0);
    await holder.release(first);
    await Promise.all(callers);
    expect(held.count).toBe(300);
    await expectNothingLeft(stage(), actor, key);
    expect(await stage().admin.exists(leaseName(key))).toBe(0);
  });
});
