import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import * as scripts from '../../src/redis/scripts.generated.js';
import { RedisStore } from '../../src/redis/store.js';
import type { Claim } from '../../src/waiting/store.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Shop } from '../support/shop.js';
import { leaseName, PREFIX, someKey } from '../waiting/actors.js';
import { Monitor } from './monitor.js';

describeWithRedis('on a server that lacks scripts', (redis) => {
  const { app, admin: owner } = inject('postgres');
  const shop = new Shop(() => ({ postgres: app, admin: owner, redis: redis().url }));
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
  });
  afterAll(() => admin.disconnect());
  beforeEach(async () => {
    for (const { lua } of Object.values(scripts)) await admin.script('LOAD', lua);
  });

  /** The store of a process that the server has always known the scripts of. */
  async function process(): Promise<RedisStore> {
    const client = new Redis(redis().url);
    const store = new RedisStore(client, { keyPrefix: PREFIX, commandTimeout: 5_000 }, () => {});
    const claim = claimOf(someKey());
    await store.acquire(claim);
    await store.release(claim);
    onTestFinished(async () => {
      await store.close();
      client.disconnect();
    });
    return store;
  }

  const claimOf = (key: string): Claim => ({ key, holder: randomUUID(), leaseTime: 60_000 });

  test('a key that one call released is free for the next call', async () => {
    const { prisma } = shop.client();
    const key = someKey();
    for (let tries = 0; tries < 10; tries++) {
      await admin.script('FLUSH');
      await prisma.$withLock(key, () => 1);
      expect(await prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
    }
  });

  test('a caller that looks before a release is executed, because the server lacks its script, waits for no lease to end', async () => {
    const { prisma } = shop.client();
    const key = someKey();
    const leaseTime = 60_000;
    for (const [next, options] of [
      [prisma, { leaseTime }],
      [shop.client({ wake: 'poll', pollInterval: 50 }).prisma, { leaseTime }],
    ] as const) {
      await prisma.$withLock(
        key,
        async () => {
          await admin.script('FLUSH');
          await admin.script('LOAD', scripts.acquire.lua);
        },
        options,
      );
      const since = performance.now();
      expect(await next.$withLock(key, () => 'in', options)).toBe('in');
      expect(performance.now() - since).toBeLessThan(2_000);
    }
  });

  test('commands are executed in their order as soon as one answer has shown it', async () => {
    const holder = await process();
    const monitor = await Monitor.start(redis().url);
    const claim = claimOf(someKey());
    await admin.script('FLUSH');
    await holder.acquire(claim);
    const [released, seen] = [holder.release(claim), holder.inspect(claim.key)];
    await released;
    expect((await seen).holder).toBeUndefined();
    // Each text was sent once, and is not needed again.
    await holder.acquire(claim);
    expect(await holder.extend([claim, claim])).toEqual(['extended', 'extended']);
    await holder.release(claim);
    const sent = await monitor.about(leaseName(claim.key));
    expect(sent.map(([verb, text]) => `${verb} ${nameOf(text)}`)).toEqual([
      ...['evalsha acquire', 'eval acquire', 'eval release', 'eval inspect', 'evalsha acquire'],
      ...['evalsha extend', 'evalsha extend', 'eval extend', 'eval extend', 'evalsha release'],
    ]);
    monitor.stop();
  });
});

/** A monitor shows a line's end as two characters. */
function nameOf(text: string | undefined): string | undefined {
  return Object.values(scripts).find(({ sha1, lua }) => text === sha1 || text === lua.replaceAll('\n', '\\n'))?.name;
}
