import { describe, expect, test } from 'vitest';
import { LockTimeoutError, LockUnavailableError } from '../../src/base/errors.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { untilHolds } from '../support/eventually.js';
import { describeWithShop } from '../support/shop.js';
import { holderOf, leaseName, someKey } from './actors.js';
import { direct, expectNothingLeft, setStage, throughProxy } from './watched-redis.js';

describeWithShop('a contender', () => {
  const stage = setStage();

  describe('look, subscribe, look again', () => {
    test('a release between the first look and the subscription is not missed', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      contender.store.beforeWatch = () => holder.release(first);
      await contender.release(await contender.acquire(key));
      expect(contender.store.looks.count).toBe(2);
    });

    test('where wake-ups cannot be heard, it looks at intervals', async () => {
      const [holder, contender] = [direct(), direct()];
      const key = someKey();
      const first = await holder.acquire(key);
      contender.store.beforeWatch = () => Promise.reject(new Error('deaf'));
      const held = contender.acquire(key);
      await contender.store.answers.reach(2);
      await holder.release(first);
      await contender.release(await held);
    });
  });

  describe('the end of the wait', () => {
    test('a caller who waits in the local queue gets the LockTimeoutError too, and its place is gone', async () => {
      const actor = direct();
      const key = someKey();
      const first = await actor.acquire(key);
      await expect(actor.acquire(key, { waitTime: 50 })).rejects.toBeInstanceOf(LockTimeoutError);
      expect(actor.room.waitingByKey().has(key)).toBe(false);
      await actor.release(first);
      await expectNothingLeft(stage(), actor, key);
      expect(actor.store.looks.count).toBe(1);
    });

    test('a Redis that gives no answer is a LockUnavailableError with its cause, and nothing is left', async () => {
      const contender = throughProxy(stage(), { commandTimeout: 100 });
      const key = someKey();
      await contender.redis.ping();
      stage().proxy.silence();
      const error = await contender.acquire(key, { waitTime: 150 }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect((error as LockUnavailableError).cause).toMatchObject({
        message: expect.stringContaining('did not answer'),
      });
      stage().proxy.resume();
      // Its looks reach Redis now, and the release that undoes them, which had been given up already, behind them.
      await stage().monitor.seen((line) => line.includes(scripts.release.sha1) && line.includes(leaseName(key)));
      await untilHolds(async () => expect(await stage().admin.exists(leaseName(key))).toBe(0));
      await expectNothingLeft(stage(), contender, key);
    });
  });

  describe('lost replies', () => {
    for (const [how, autoResendUnfulfilledCommands, commandTimeout] of [
      ['the client resends it after the reconnect', true, 600_000],
      ['the client forgets it', false, 1_000],
    ] as const) {
      test(`an acquire whose reply is cut off ends up holding once, under one holder (${how})`, async () => {
        const contender = throughProxy(stage(), { redis: { autoResendUnfulfilledCommands }, commandTimeout });
        const key = someKey();
        await contender.redis.ping();
        const remove = stage().proxy.onData('toServer', (data) => {
          if (!data.includes(leaseName(key))) return 'forward';
          remove();
          return 'cut-after';
        });
        const turn = await contender.acquire(key);
        const { loss, holder } = turn.lease;
        expect(loss).toBeUndefined();
        // A file that runs beside this one may list all keys.
        const sent = (await stage().monitor.about(key)).filter(([, sha1]) => sha1 !== scripts.inspect.sha1);
        expect(sent.filter(([, sha1]) => sha1 === scripts.acquire.sha1)).toHaveLength(2);
        expect(sent.every((line) => line.includes(holder))).toBe(true);
        expect(await holderOf(stage().admin, key)).toBe(holder);
        // One lease: whoever comes next is refused, and one release is enough.
        await expect(direct().acquire(key, { waitTime: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
        await contender.release(turn);
        expect(await stage().admin.exists(leaseName(key))).toBe(0);
      });
    }

    test('a lease whose reply came after its end is not believed', async () => {
      const contender = throughProxy(stage());
      const key = someKey();
      await contender.redis.ping();
      stage().proxy.silence('toClient');
      const held = contender.acquire(key, { leaseTime: 100 });
      await stage().monitor.seen((line) => line.includes(leaseName(key)));
      await untilHolds(async () => expect(await stage().admin.exists(leaseName(key))).toBe(0));
      stage().proxy.resume();
      const turn = await held;
      expect(turn.lease.loss).toBeUndefined();
      expect(contender.store.looks.count).toBeGreaterThan(1);
      await contender.release(turn);
    });
  });
});
