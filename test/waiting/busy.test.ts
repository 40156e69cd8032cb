import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { type Actor, leaseName, queueName, someKey } from './actors.js';
import { asleep, direct, setStage } from './watched-redis.js';

describeWithShop('a busy key', () => {
  const stage = setStage();

  test('is had also by a waiter that a flush took out of the queue, though each turn brings an offer to others', async () => {
    const { admin } = stage();
    const key = someKey();
    const asked = { leaseTime: 60_000 };
    const [holder, contender, ...bystanders] = [direct(), direct(), direct(), direct()];
    const first = await holder.acquire(key, asked);
    const { turn } = await asleep(contender, key, asked);
    let served = false;
    // As FLUSHALL; a newcomer has the key before the holder notices.
    await admin.del(leaseName(key), queueName(key));
    const busy = async (actor: Actor) => {
      while (!served) {
        const mine = await actor.acquire(key, asked);
        const somebodyWaits = async () => served || (await admin.llen(queueName(key))) > 0;
        await eventually('somebody waits', somebodyWaits);
        await actor.release(mine);
      }
    };
    const busyOnes = bystanders.map(busy);
    await holder.release(first);
    const mine = await turn;
    served = true;
    await contender.release(mine);
    await Promise.all(busyOnes);
    expect(await admin.exists(leaseName(key), queueName(key))).toBe(0);
  });
});
