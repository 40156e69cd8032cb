import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { LockUnavailableError } from '../../src/base/errors.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Actor, leaseName, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';
import { queued } from '../waiting/waiter.js';
import { storeActor } from './store-actor.js';

describeWithRedis('a Redis whose memory is full, and that evicts nothing', (redis) => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
  });
  afterAll(() => admin.disconnect());

  const makeActor = () => storeActor(new Redis(redis().url));

  /** From now on, until the test is over. */
  async function full(): Promise<void> {
    await admin.config('SET', 'maxmemory', '1');
    onTestFinished(async () => {
      await admin.config('SET', 'maxmemory', '0');
    });
    await expect(admin.set('one more', '1')).rejects.toThrow('OOM');
  }

  test('a lease is renewed, handed on, taken away and given back, and a free key taken', async () => {
    const { store } = makeActor();
    const [claim, other] = [claimOf(someKey()), claimOf(someKey())];
    await store.acquire(claim);
    await full();
    expect(await store.acquire(claim)).toMatchObject({ taken: true });
    expect(await store.extend([claim])).toEqual(['extended']);
    expect(await store.yield(claim)).toBe(true);
    expect(await store.transfer(claim, 'successor')).toBe(true);
    expect(await store.force(claim.key, 'successor')).toBe(true);
    expect(await store.acquire(claim)).toMatchObject({ taken: true });
    await store.release(claim);
    expect(await admin.exists(leaseName(claim.key))).toBe(0);
    expect(await store.acquire(other)).toMatchObject({ taken: true });
  });

  test('who waited already is made the offer, and can confirm it', async () => {
    const { holder, first, second } = await queued(makeActor, 2);
    await full();
    const told = second.next();
    await holder.release();
    expect(await told).toEqual(first.turn());
    expect(await first.look()).toBe(true);
    await first.release();
    expect(await second.look()).toBe(true);
  });

  test('there is no place in the queue any more: who waits hears of a release all the same', async () => {
    const [holder, contender] = [new Actor({ url: redis().url }), new Actor({ url: redis().url })];
    const key = someKey();
    const turn = await holder.acquire(key);
    await full();
    const waiting = contender.acquire(key, { waitTime: 20_000 });
    await contender.store.answers.reach(2);
    await holder.release(turn);
    await waiting;
  });

  test('and who gives up is told why it could not wait', async () => {
    const [holder, contender] = [new Actor({ url: redis().url }), new Actor({ url: redis().url })];
    const key = someKey();
    await holder.acquire(key);
    await full();
    const error = await contender.acquire(key, { waitTime: 300 }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect((error as Error).message).toMatch(/OOM command.*raise maxmemory/);
  });
});
