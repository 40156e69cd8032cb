import { expect, test } from 'vitest';
import { busy } from '../support/busy.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a call that is struck before it is admitted', () => {
  const shop = new Shop();

  test('rejects with the reason of its signal, also where that is an error of a database', async () => {
    const { key } = await shop.product(1);
    // Has the key's row, and another lease: as with onRedisUnavailable: 'postgres', or after a flush.
    const other = shop.client({ keyPrefix: 'other:' }).prisma;
    const { prisma } = shop.client();
    const [inside, goOn] = [gate(), gate()];
    const held = other.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const abort = new AbortController();
    const reason = Object.assign(new Error('a write conflict of another call'), { code: 'P2034' });
    const call = prisma.$withLock(key, () => 'in', { signal: abort.signal, waitTime: 2_000 });
    call.catch(() => {});
    await shop.blocked('fenced_lock.admit');
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
    goOn.open();
    await held.catch(() => {});
  });

  test('hears its abort at once where the pool has no connection for it, and gives its lease back', async () => {
    const { key } = await shop.product(1);
    const { prisma, plain } = shop.client({ pool: { max: 1 } });
    const bystander = await busy(plain);
    const abort = new AbortController();
    const since = performance.now();
    const call = prisma.$withLock(key, () => 'in', { signal: abort.signal, maxWait: 20_000 });
    const redis = shop.redis();
    const lease = `fenced-lock:{${key}}:lease`;
    await eventually('it has the lease', async () => (await redis.exists(lease)) === 1);
    abort.abort(new Error('no sale'));
    await expect(call).rejects.toThrow('no sale');
    // An answer of Postgres would be waited for longer than that, and there is none to come.
    expect(performance.now() - since).toBeLessThan(1_900);
    await eventually('it is given back', async () => (await redis.exists(lease)) === 0);
    await bystander.letGo();
    expect(await prisma.$withLock(key, () => 'in')).toBe('in');
  });
});
