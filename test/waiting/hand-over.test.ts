import { expect, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import type { Emit } from '../../src/base/events.js';
import { namesOf } from '../../src/redis/names.js';
import { FallbackStore } from '../../src/stores/fallback.js';
import type { LeaseStore } from '../../src/waiting/store.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { type Actor, type Asked, holderOf, leaseName, PREFIX, someKey } from './actors.js';
import { direct, expectFree, expectNothingLeft, sentAbout, setStage } from './watched-redis.js';

describeWithShop('the hand-over inside a process', () => {
  const stage = setStage();

  /** So many callers, one after the other: the names of the holders, and what it took. */
  async function chain(
    actor: Actor,
    key: string,
    asked: readonly Asked[],
  ): Promise<{ holders: Set<string>; sent: string[] }> {
    const holders = new Set<string>();
    const callers = asked.map(async (each) => {
      const turn = await actor.acquire(key, each);
      holders.add(turn.lease.holder);
      turn.end();
    });
    await Promise.all(callers);
    await actor.store.released.settled();
    const sent = await sentAbout(stage(), key);
    await expectNothingLeft(stage(), actor, key);
    await expectFree(stage(), key);
    return { holders, sent };
  }
  const times = (count: number): Asked[] => Array.from({ length: count }, () => ({}));

  test('sends Redis nothing', async () => {
    const [actor, key] = [direct(), someKey()];
    const { holders, sent } = await chain(actor, key, times(10));
    expect(holders.size).toBe(1);
    expect(sent).toEqual(['acquire', 'release']);
  });

  test('a caller whose lease is not renewed gets one with its full time', async () => {
    const [actor, key] = [direct(), someKey()];
    const first = await actor.acquire(key);
    const unrenewed = actor.acquire(key, { renew: false });
    const last = actor.acquire(key);
    const leftAt = now();
    first.end();
    const second = await unrenewed;
    expect(second.lease.expiresAt).toBeGreaterThanOrEqual(leftAt + 60_000);
    const secondLeftAt = now();
    second.end();
    // And what that one leaves behind has less left than the next one asks for.
    expect((await last).lease.expiresAt).toBeGreaterThanOrEqual(secondLeftAt + 60_000);
    await actor.release(await last);
    expect(await sentAbout(stage(), key)).toEqual(['acquire', 'yield', 'yield', 'release']);
  });

  test('a lease that was lost between two turns is not handed over: the next caller waits for one of its own', async () => {
    const [actor, key] = [direct(), someKey()];
    const first = await actor.acquire(key);
    const next = actor.acquire(key);
    await stage().admin.set(leaseName(key), 'somebody else', 'PX', 60_000);
    first.lease.lose('gone');
    first.end();
    await actor.store.answers.reach(3);
    expect(actor.room.waitingByKey().get(key)).toBe(1);
    expect(await holderOf(stage().admin, key)).toBe('somebody else');
    await stage().admin.multi().del(leaseName(key)).publish(namesOf(PREFIX, key).wake, 'look').exec();
    const second = await next;
    expect(second.lease.holder).not.toBe(first.lease.holder);
    expect(second.lease.loss).toBeUndefined();
    await actor.release(second);
  });

  test.each<[string, string, ((store: LeaseStore, emit: Emit) => LeaseStore)?]>([
    ['is why the next caller does not get the key, and not somebody who has it', 'LOCK_UNAVAILABLE'],
    // Redis is no reason to fail there.
    ['ends the wait of one that can do without it as ever', 'LOCK_TIMEOUT', (...given) => new FallbackStore(...given)],
  ])('a yield without an answer %s', async (_, code, wrap = (store) => store) => {
    const [actor, key] = [direct({ passOnAfter: 0, wrap }), someKey()];
    const first = await actor.acquire(key);
    actor.store.beforeYieldAnswer = () => new Promise((resolve) => setTimeout(resolve, 1_000));
    const next = actor.acquire(key, { waitTime: 500 });
    first.end();
    await expect(next).rejects.toMatchObject({ code });
    await actor.store.yielded.reach(1);
    await eventually('it is released', async () => (await stage().admin.exists(leaseName(key))) === 0);
  });

  test('the end of the last turn sends the release at once: whoever looks next has the key by its first look', async () => {
    const [actor, other, key] = [direct(), direct(), someKey()];
    await other.release(await other.acquire(someKey()));
    for (const asked of [{}, { isHandle: true }]) {
      const turn = await actor.acquire(key, asked);
      turn.end();
      expect(actor.room.isFree(key)).toBe(true);
      // Another client of the process, with a connection of its own.
      await other.release(await other.acquire(key, { waitTime: 0 }));
    }
    await actor.store.released.settled();
    expect(await sentAbout(stage(), key)).toEqual(Array(4).fill(['acquire', 'release']).flat());
  });
});
