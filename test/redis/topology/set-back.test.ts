import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { RedisStore } from '../../../src/redis/store.js';
import { describeWithShop } from '../../support/shop.js';
import { leaseName, someKey } from '../../waiting/actors.js';
import { claimOf, expectLeft, LONG, SHORT } from '../../waiting/claims.js';
import { queued } from '../../waiting/waiter.js';
import { storeActor } from '../store-actor.js';

const HOUR = 3_600_000;
const OFFER = 1_000;

// What a wall clock does that is set back, without one: test/promises/g5-clocks.slow.test.ts sets the server's.
describeWithShop('a lease that stands for longer than it was taken for', () => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(inject('redis').url as string);
  });
  afterAll(() => admin.disconnect());

  const makeActor = () => storeActor(new Redis(inject('redis').url as string));

  /** The key has a lease by now. */
  async function setBack(key: string): Promise<void> {
    expect(await admin.pexpire(leaseName(key), HOUR)).toBe(1);
  }

  async function left(key: string): Promise<number> {
    return await admin.pttl(leaseName(key));
  }

  test('it is cut to that at the first look of anybody, whatever lease that one wants, and ends then', async () => {
    const [holder, contender] = [makeActor().store, makeActor().store];
    const key = someKey();
    await holder.acquire(claimOf(key, SHORT));
    await setBack(key);
    expectLeft(await contender.acquire(claimOf(key, LONG)), 0, SHORT);
    expect(await left(key)).toBeLessThanOrEqual(SHORT);
  });

  test.each([
    ['an acquire that is sent again', (store, claim) => store.acquire(claim)],
    ['an extension', (store, claim) => store.extend([claim])],
    ['a yield that keeps it', (store, claim) => store.yield(claim)],
    ['a transfer', (store, claim) => store.transfer(claim, 'successor')],
  ] satisfies Array<[string, (store: RedisStore, claim: ReturnType<typeof claimOf>) => unknown]>)(
    'what it was taken for is what it was given last: by %s',
    async (_, give) => {
      const [holder, contender] = [makeActor().store, makeActor().store];
      const claim = claimOf(someKey(), SHORT);
      await holder.acquire(claim);
      await give(holder, { ...claim, leaseTime: LONG });
      expectLeft(await contender.acquire(claimOf(claim.key)), SHORT, LONG);
      await setBack(claim.key);
      expectLeft(await contender.acquire(claimOf(claim.key)), SHORT, LONG);
    },
  );

  test('so is an offer that nobody comes for', async () => {
    const { key, holder } = await queued(makeActor, 1);
    await holder.release();
    await setBack(key);
    expectLeft(await makeActor().store.acquire(claimOf(key)), 0, OFFER);
  });
});
