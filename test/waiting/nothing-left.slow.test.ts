import { randomUUID } from 'node:crypto';
import { getEventListeners, setMaxListeners } from 'node:events';
import { expect, test } from 'vitest';
import { untilHolds } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { leaseName } from './actors.js';
import { direct, setStage } from './watched-redis.js';

const LOCKS = 10_000;
const AT_ONCE = 200;

describeWithShop('many keys', () => {
  const stage = setStage();

  test(`${LOCKS} locks on as many keys, each waited for, leave no listener, channel or name`, {
    timeout: 120_000,
  }, async () => {
    const [holder, contender] = [direct(), direct()];
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const folder = `stock:${randomUUID()}`;
    let done = 0;
    const lock = async (key: string) => {
      const first = await holder.acquire(key, { signal });
      const turn = contender.acquire(key, { signal });
      // A second caller behind it, whose time is over soon enough.
      const last = contender.acquire(key, { signal, waitTime: 20_000 });
      first.end();
      (await turn).end();
      (await last).end();
      done++;
    };
    for (let from = 0; from < LOCKS; from += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => lock(`${folder}:${from + index}`)));
    }
    expect(done).toBe(LOCKS);
    // Resolves where nobody has a turn any more and everything has been given back.
    await Promise.all([holder.room.close(), contender.room.close()]);
    expect(contender.room.isFree(`${folder}:0`)).toBe(true);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const names = leaseName(`${folder}:0`).replace(/:0\}.*$/, '*');
    await untilHolds(async () => expect(await stage().admin.pubsub('CHANNELS', names)).toEqual([]));
    const left = (await stage().admin.keys('*')).filter((name) => name.includes(folder));
    expect(left).toEqual([]);
    expect([...holder.events, ...contender.events]).toEqual([]);
  });
});
