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
});
