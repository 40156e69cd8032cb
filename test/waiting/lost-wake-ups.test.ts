import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { expect, inject, test, vi } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { untilHolds } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate } from '../support/shop.js';
import { Actor, leaseName, PREFIX, queueName, someKey } from './actors.js';
import { asleep, direct, expectFree, expectNothingLeft, setStage } from './watched-redis.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

/** By its id and not by its type, because other tests have subscribers on this server too. */
async function killSubscriber(admin: Redis, connectionName: string): Promise<void> {
  const clients = ((await admin.client('LIST')) as string).split('\n');
  const line = clients.find((each) => each.includes(` name=${connectionName} `) && !each.includes(' sub=0 '));
  await admin.client('KILL', 'ID', /\bid=(\d+)/.exec(line ?? '')?.[1] as string);
}

describeWithShop('wake-ups that are lost, late or wrong cost time only', () => {
  const stage = setStage();
  const wakeOf = (key: string) => namesOf(PREFIX, key).wake;

  test('a contender whose subscriber is killed looks, and is in the queue again', async () => {
    const connectionName = randomUUID();
    const [holder, contender, key] = [direct(), direct({ redis: { connectionName } }), someKey()];
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    await killSubscriber(stage().admin, connectionName);
    // When the connection broke, and when it heard again.
    await contender.store.heard.reach(2);
    expect(contender.store.wakeUps).toEqual(['look', 'look']);
    expect(await stage().admin.llen(queueName(key))).toBe(1);
    await holder.release(first);
    await contender.release(await turn);
    await expectNothingLeft(stage(), contender, key);
  });

  test('a release in the moment in which the subscriber is away is found by the look after it', async () => {
    const connectionName = randomUUID();
    const [holder, contender, key] = [direct(), direct({ redis: { connectionName } }), someKey()];
    for (let round = 0; round < 5; round++) {
      const first = await holder.acquire(key);
      const turn = contender.acquire(key);
      await untilHolds(async () => expect(await stage().admin.llen(queueName(key))).toBe(1));
      await Promise.all([killSubscriber(stage().admin, connectionName), holder.release(first)]);
      await contender.release(await turn);
    }
    await expectFree(stage(), key);
  });

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

  test('messages that mean nothing to it make it look, and leave it in its place', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    const places = await stage().admin.lrange(queueName(key), 0, -1);
    for (const message of ['look', 'look', '', 'nonsense', `${randomUUID()} nonsense`, ' ', `${randomUUID()} -5`]) {
      await stage().admin.publish(wakeOf(key), message);
    }
    await contender.store.heard.reach(7);
    expect(await stage().admin.lrange(queueName(key), 0, -1)).toEqual(places);
    expect(contender.room.waitingByKey().get(key)).toBe(1);
    await holder.release(first);
    await contender.release(await turn);
  });

  test("the end of somebody else's turn is looked at: nobody says so if that one never comes for it", async () => {
    const [contender, key] = [direct(), someKey()];
    await stage().admin.set(leaseName(key), 'somebody');
    const { turn } = await asleep(contender, key);
    await stage().admin.multi().del(leaseName(key)).publish(wakeOf(key), `${randomUUID()} 100`).exec();
    await contender.release(await turn);
    expect(contender.store.looks.count).toBe(3);
  });

  test('so it is if the message comes while a look is under way', async () => {
    const [contender, key] = [direct(), someKey()];
    await stage().admin.set(leaseName(key), 'somebody');
    contender.store.beforeAnswer = async (look) => {
      if (look !== 2) return;
      await stage().admin.multi().del(leaseName(key)).publish(wakeOf(key), `${randomUUID()} 100`).exec();
      await contender.store.heard.reach(1);
    };
    await contender.release(await contender.acquire(key));
  });

  test('a contender of a frozen process that comes back late has lost an offer and nothing else', async () => {
    const [holder, other, key] = [direct(), direct(), someKey()];
    const { hostname, port } = new URL(inject('redis').url as string);
    const proxy = await startFaultProxy({ host: hostname, port: Number(port) });
    const contender = new Actor({ url: proxy.url(inject('redis').url as string) });
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key);
    const { turn: elsewhere } = await asleep(other, key);
    proxy.silence();
    await holder.release(first);
    // It gets on when the offer is over.
    const otherTurn = await elsewhere;
    proxy.resume();
    await contender.store.heard.reach(1);
    expect(contender.room.waitingByKey().get(key)).toBe(1);
    await other.release(otherTurn);
    await contender.release(await turn);
    await proxy.close();
  });
});
