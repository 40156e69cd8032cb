import { expect, inject, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate } from '../support/shop.js';
import { Actor, leaseName, PREFIX, queueName, someKey } from './actors.js';
import { asleep, direct, setStage } from './watched-redis.js';

describeWithShop('wake-ups that are lost, late or wrong cost time only', () => {
  const stage = setStage();
  const wakeOf = (key: string) => namesOf(PREFIX, key).wake;

  test('a subscriber whose line goes silent is found by its ping, and the key with it', async () => {
    const { hostname, port } = new URL(inject('redis').url as string);
    const proxy = await startFaultProxy({ host: hostname, port: Number(port) });
    const [holder, key] = [direct(), someKey()];
    const contender = new Actor({ url: proxy.url(inject('redis').url as string) });
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    const held = gate();
    const remove = proxy.onData('toClient', (data) => {
      if (!data.includes(wakeOf(key))) return 'forward';
      remove();
      held.open();
      return 'hold';
    });
    await holder.release(first);
    await held.opened;
    expect(contender.store.heard.count).toBe(0);
    await contender.release(await turn);
    expect(contender.events[0]).toMatchObject({ type: 'subscriber-down' });
    await proxy.close();
  });

  test('a waiter that a flush took out of the queue of a busy key has it, though each turn brings an offer to others', async () => {
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
