import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { RedisStore } from '../../src/redis/store.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Actor, PREFIX, someKey } from '../waiting/actors.js';

describeWithRedis('a Redis that is shared', (redis) => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
  });
  afterAll(() => admin.disconnect());
  beforeEach(() => admin.flushall());

  const names = async (db: number) => {
    await admin.select(db);
    const found = await admin.keys('*');
    await admin.select(0);
    return found.toSorted();
  };

  test("a client's own keyPrefix stands before every name, and a wake-up reaches those who have it", async () => {
    const make = (keyPrefix: string) => new Actor({ url: redis().url, redis: { keyPrefix } });
    const [holder, contender, stranger] = [make('shop:'), make('shop:'), make('blog:')];
    const key = someKey();
    const turn = await holder.acquire(key);
    const theirs = await stranger.acquire(key);
    const waiting = contender.acquire(key);
    await contender.store.answers.reach(2);
    expect(await names(0)).toEqual([
      `blog:${PREFIX}{${key}}:lease`,
      ...[`shop:${PREFIX}{${key}}:lease`, `shop:${PREFIX}{${key}}:queue`],
    ]);
    await holder.release(turn);
    await contender.release(await waiting);
    expect(await names(0)).toEqual([`blog:${PREFIX}{${key}}:lease`]);
    expect((await stranger.store.list()).map((each) => each.key)).toEqual([key]);
    expect(await holder.store.list()).toEqual([]);
    await stranger.release(theirs);
  });

  test('one client of many stores: it has one listener for them all, of which Node does not warn, and none in the end', async () => {
    const client = new Redis(redis().url);
    onTestFinished(() => client.disconnect());
    const before = client.listenerCount('ready');
    const stores = Array.from(
      { length: 20 },
      () => new RedisStore(client, { keyPrefix: PREFIX, commandTimeout: 2_000 }, () => {}),
    );
    let returned = 0;
    const ends = stores.map((store) => store.onReturn(() => returned++));
    expect(client.listenerCount('ready')).toBe(before + 1);
    await client.ping();
    expect(returned).toBe(20);
    for (const end of ends) end();
    for (const store of stores) await store.close();
    expect(client.listenerCount('ready')).toBe(before);
  });
});
