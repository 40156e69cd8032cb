import { expect, test, vi } from 'vitest';
import { LockTimeoutError } from '../../src/base/errors.js';
import { describeWithShop } from '../support/shop.js';
import { queueName, someKey } from './actors.js';
import { asleep, direct, expectNothingLeft, setStage } from './watched-redis.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

describeWithShop('the place of a process in the queue', () => {
  const stage = setStage();

  test('others that hear of a turn that is not theirs send nothing', async () => {
    const [holder, contender, bystander, key] = [direct(), direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    await asleep(bystander, key);
    await holder.release(first);
    await turn;
    await bystander.store.heard.reach(1);
    expect(bystander.store.wakeUps).toEqual([{ turn: (await turn).lease.holder, expiresIn: 1_000 }]);
    expect(bystander.store.looks.count).toBe(2);
  });

  test('a caller without a wait time takes none', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    await expect(contender.acquire(key, { waitTime: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await stage().admin.exists(queueName(key))).toBe(0);
    await expectNothingLeft(stage(), contender, key);
    await holder.release(first);
  });

  test('it is kept for longer when a caller comes that waits for longer', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    await holder.acquire(key);
    await asleep(contender, key, { waitTime: 5_000 });
    const spare = (await stage().admin.pttl(queueName(key))) - 5_000;
    void contender.acquire(key, { waitTime: 500_000 });
    await contender.store.answers.reach(3);
    expect(await stage().admin.pttl(queueName(key))).toBeGreaterThan(500_000 + spare - 5_000);
    // And not asked for again by one that waits for less.
    void contender.acquire(key, { waitTime: 1_000 }).catch(() => {});
    void contender.acquire(key, { waitTime: 500_000 + spare / 2 });
    await contender.redis.ping();
    expect(contender.store.looks.count).toBe(3);
  });
});
