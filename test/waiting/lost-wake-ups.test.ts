import type { Redis } from 'ioredis';
import { expect, inject, test, vi } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate } from '../support/shop.js';
import { Actor, PREFIX, someKey } from './actors.js';
import { asleep, direct, setStage } from './watched-redis.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

/** By its id and not by its type, because other tests have subscribers on this server too. */
async function _killSubscriber(admin: Redis, connectionName: string): Promise<void> {
  const clients = ((await admin.client('LIST')) as string).split('\n');
  const line = clients.find((each) => each.includes(` name=${connectionName} `) && !each.includes(' sub=0 '));
  await admin.client('KILL', 'ID', /\bid=(\d+)/.exec(line ?? '')?.[1] as string);
}

describeWithShop('wake-ups that are lost, late or wrong cost time only', () => {
  const _stage = setStage();
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
});
