import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { RedisStore } from '../../src/redis/store.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Actor, PREFIX, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';

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

  test('in another database: nothing is in that of others, and both have the key', async () => {
    const [here, there] = [new Actor({ url: redis().url }), new Actor({ url: redis().url, redis: { db: 3 } })];
    const key = someKey();
    const turns = [await here.acquire(key), await there.acquire(key)];
    expect(await names(0)).toHaveLength(1);
    expect(await names(3)).toHaveLength(1);
    expect(turns).toHaveLength(2);
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

  test('a look that has no answer before the store is closed leaves no listener with the client', async () => {
    const client = new Redis(redis().url);
    onTestFinished(() => client.disconnect());
    await client.ping();
    const store = new RedisStore(client, { keyPrefix: PREFIX, commandTimeout: 2_000 }, () => {});
    redis().freeze();
    onTestFinished(() => redis().thaw());
    const looked = store.acquire(claimOf(someKey()), { atMost: 200 });
    await store.close();
    await expect(looked).rejects.toThrow('did not answer');
    expect([client.listenerCount('connect'), client.listenerCount('end')]).toEqual([0, 0]);
  });

  // Channels are the whole server's: two applications with one prefix hear each other, whatever their databases.
  test.each([
    ['databases', [{ db: 0 }, { db: 3 }]],
    ['prefixes of their clients', [{ keyPrefix: 'shop:' }, { keyPrefix: 'blog:' }]],
  ] as const)(
    'a wake-up of another application costs a look, and gives nothing to anybody (%s)',
    async (_, [first, second]) => {
      const make = (options: typeof first | typeof second) => new Actor({ url: redis().url, redis: options });
      const [holder, contender] = [make(first), make(first)];
      const [neighbour, nextDoor] = [make(second), make(second)];
      const key = someKey();
      const turns = [await holder.acquire(key), await neighbour.acquire(key)] as const;
      const waiting = [contender.acquire(key), nextDoor.acquire(key)] as const;
      await Promise.all([contender.store.answers.reach(2), nextDoor.store.answers.reach(2)]);

      await neighbour.release(turns[1]);
      const theirs = await waiting[1];
      await contender.store.heard.reach(1);
      // An offer that is somebody else's: no reason to look before it has ended.
      expect(contender.store.wakeUps).toEqual([{ offeredTo: theirs.lease.holder, expiresIn: 1_000 }]);
      expect(contender.store.answers.count).toBe(2);

      await nextDoor.release(theirs);
      await contender.store.heard.reach(2);
      // Free there and held here: a look.
      expect(contender.store.wakeUps[1]).toBe('look');
      await contender.store.answers.reach(3);
      expect(await holder.store.extend([turns[0].lease])).toEqual(['extended']);
      await holder.release(turns[0]);
      await waiting[0];
    },
  );
});
