import type { LookupAddress } from 'node:dns';
import { Redis, type RedisOptions } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { RedisStore } from '../../../src/redis/store.js';
import { PREFIX } from '../../lease/actors.js';
import { claimOf } from '../../lease/claims.js';
import { untilHolds } from '../../support/eventually.js';
import type { RedisSite } from '../../support/redis-site.js';
import { describeWithRedis } from '../../support/redis-suite.js';
import { freePort, startSentinelGroup } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';

/** A client whose store says after each connection that ended whether it was refused; `false` where it was not. */
function open(options: Omit<RedisOptions, 'replyMapping'>) {
  const redis = new Redis({ retryStrategy: () => 20, ...options });
  redis.on('error', () => {});
  const store = new RedisStore(redis, { keyPrefix: PREFIX, commandTimeout: 2_000 }, () => {});
  const refused = () => store.reach.refused;
  const said: boolean[] = [];
  redis.on('close', () => said.push(refused()));
  onTestFinished(async () => {
    redis.disconnect();
    await store.close();
  });
  return { redis, store, refused, said };
}

/** Not `once`, which the errors in between would end. */
function next(redis: Redis, event: 'ready' | 'end'): Promise<void> {
  return new Promise((resolve) => redis.once(event, () => resolve()));
}

describeWithRedis('one server', (server) => {
  test('that is dead is known as refused, and not any more once it is connected again', async () => {
    const { redis, refused } = open({ port: server().port });
    await redis.ping();
    expect(refused()).toBe(false);
    await server().killHard();
    await untilHolds(() => expect(refused()).toBe(true));
    await Promise.all([next(redis, 'ready'), server().start()]);
    expect(refused()).toBe(false);
  });

  test('is known as refused also after the store was closed, and used again', async () => {
    const { redis, store, refused } = open({ port: server().port });
    await redis.ping();
    await store.close();
    expect(redis.listenerCount('connect')).toBe(0);
    await store.inspect('a key');
    await server().killHard();
    await untilHolds(() => expect(refused()).toBe(true));
    await Promise.all([next(redis, 'ready'), server().start()]);
  });

  test('a look that has no answer before the store is closed leaves nothing with the client', async () => {
    const { redis, store } = open({ port: server().port });
    await redis.ping();
    server().freeze();
    const looked = store.acquire(claimOf('a key'), { atMost: 200 });
    await store.close();
    await expect(looked).rejects.toThrow('did not answer');
    expect([redis.listenerCount('connect'), redis.listenerCount('end')]).toEqual([0, 0]);
    server().thaw();
  });

  test('a refusal is not believed for ever by a client that tries no more', async () => {
    const { redis, refused } = open({ port: await freePort(), retryStrategy: () => null });
    await next(redis, 'end');
    expect(refused()).toBe(true);
    await untilHolds(() => expect(refused()).toBe(false));
  });

  test('one address that refuses says nothing about another one that cannot be reached', async () => {
    const addresses: LookupAddress[] = [
      { address: '127.0.0.1', family: 4 },
      { address: '255.255.255.255', family: 4 },
    ];
    const lookup = (_: string, __: unknown, answer: (error: null, addresses: LookupAddress[]) => void) =>
      answer(null, addresses);
    const port = await freePort();
    const { said } = open({ host: 'redis.test', port, tls: { lookup } as unknown as Record<string, unknown> });
    await untilHolds(() => expect(said.length).toBeGreaterThan(1));
    expect(said).not.toContain(true);
    addresses.pop();
    await untilHolds(() => expect(said.at(-1)).toBe(true));
  });
});

describeWithGroup('Sentinel', startSentinelGroup, (group) => {
  test('a master that is dead has left its leases to another one', async () => {
    const { name, sentinels } = group().site as Extract<RedisSite, { kind: 'sentinel' }>;
    const { redis, said } = open({ name, sentinels: [...sentinels] });
    await redis.ping();
    const refusals: unknown[] = [];
    redis.on('error', (error: { code?: string }) => error.code === 'ECONNREFUSED' && refusals.push(error));
    const master = await group().ownerOf('');
    const ready = next(redis, 'ready');
    await master.killHard();
    await ready;
    expect(refusals).not.toEqual([]);
    expect(said).not.toContain(true);
    await master.start();
  });
});
