import { expect, test } from 'vitest';
import * as scripts from '../../src/redis/scripts.generated.js';
import { describeWithShop } from '../support/shop.js';
import { leaseName, someKey } from './actors.js';
import { direct, expectNothingLeft, setStage, throughProxy } from './watched-redis.js';

describeWithShop("the caller's signal", () => {
  const stage = setStage();
  const reason = new Error('the caller went home');

  test('already aborted: nothing is sent', async () => {
    const contender = direct();
    const key = someKey();
    await expect(contender.acquire(key, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(contender.store.looks.count).toBe(0);
    await expectNothingLeft(stage(), contender, key);
  });

  test('while a look is in flight: the call rejects at once, and the lease that Redis gives later is given back', async () => {
    const contender = throughProxy(stage());
    const key = someKey();
    await contender.redis.ping();
    stage().proxy.silence('toServer');
    const caller = new AbortController();
    const gone = contender.acquire(key, { signal: caller.signal });
    await contender.store.looks.reach(1);
    caller.abort(reason);
    await expect(gone).rejects.toBe(reason);
    expect(await stage().monitor.about(key)).toEqual([]);
    stage().proxy.resume();
    await contender.store.released.reach(1);
    expect((await stage().monitor.about(key)).map(([, sha1]) => sha1)).toEqual([
      scripts.acquire.sha1,
      scripts.release.sha1,
    ]);
    expect(await stage().admin.exists(leaseName(key))).toBe(0);
    await expectNothingLeft(stage(), contender, key);
  });
});
