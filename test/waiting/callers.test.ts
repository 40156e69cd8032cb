import { expect, test } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { someKey, Tally } from './actors.js';
import { asleep, direct, expectFree, expectNothingLeft, sentAbout, setStage } from './watched-redis.js';

describeWithShop('the callers of one process', () => {
  const stage = setStage();

  test('each gives back what it has ahead when it is about to wait, and one that need not wait keeps it', async () => {
    const [caller, key] = [direct(), someKey()];
    const discarded: string[] = [];
    const preopenOf = (who: string) => ({
      preopen: { open: () => {}, wait: () => void discarded.push(who), discard: () => {} },
    });
    const first = await caller.acquire(key, preopenOf('first'));
    expect(discarded).toEqual([]);
    const second = caller.acquire(key, preopenOf('second'));
    expect(discarded).toEqual(['second']);
    first.end();
    await caller.release(await second);
    expect(discarded).toEqual(['second']);
  });

  test('300 wait for one key and send Redis nothing: one of them looks, twice', async () => {
    const [holder, actor] = [direct(), direct()];
    const key = someKey();
    const first = await holder.acquire(key);
    const before = (await sentAbout(stage(), key)).length;
    const called = new Tally();
    const callers = Array.from({ length: 300 }, async () => {
      const mine = await actor.acquire(key);
      called.add();
      await actor.release(mine);
    });
    await actor.store.answers.reach(2);
    expect(actor.room.waitingByKey().get(key)).toBe(300);
    // What polls gives no event: it needs some time in which to be seen.
    await new Promise((resolve) => setTimeout(resolve, 700));
    // A file that runs beside this one may list what is there, and looks at each key for that.
    const sent = (await sentAbout(stage(), key)).slice(before);
    expect(sent).toEqual(['acquire', 'subscribe', 'acquire']);
    expect(called.count).toBe(0);
    await holder.release(first);
    await Promise.all(callers);
    expect(called.count).toBe(300);
    await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
  });

  test('processes that hear of a turn that is not theirs send nothing', async () => {
    const [holder, contender, bystander, key] = [direct(), direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    await asleep(bystander, key);
    await holder.release(first);
    await turn;
    await bystander.store.heard.reach(1);
    expect(bystander.store.wakeUps).toEqual([{ offeredTo: (await turn).lease.holder, expiresIn: 1_000 }]);
    expect(bystander.store.looks.count).toBe(2);
  });
});
