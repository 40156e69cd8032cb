import { expect, inject, test } from 'vitest';
import { aroundScripts } from '../support/around-scripts.js';
import { busy } from '../support/busy.js';
import { proxied } from '../support/proxied.js';
import { atWork, describeWithShop, Shop } from '../support/shop.js';

/** So many microtasks later. */
async function later(steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await undefined;
}

describeWithShop('a call that is struck before its work has begun', () => {
  const shop = new Shop();

  test('rejects with the reason of its signal, also where that is an error of a database', async () => {
    const { key } = await shop.product(1);
    // Has the key's row, and another lease: as with onRedisUnavailable: 'postgres', or after a flush.
    const other = shop.client({ keyPrefix: 'other:' }).prisma;
    const { prisma } = shop.client();
    const { held, goOn } = await atWork(other, key);
    const abort = new AbortController();
    const reason = Object.assign(new Error('a write conflict of another call'), { code: 'P2034' });
    const call = prisma.$withLock(key, () => 'in', { signal: abort.signal, waitTime: 2_000 });
    call.catch(() => {});
    await shop.blocked('fenced_lock.admit');
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
    goOn();
    await held.catch(() => {});
  });

  test('sends nothing on a connection that comes after `maxWait`', async () => {
    const { key } = await shop.product(10);
    const { prisma, plain, proxy } = await proxied(shop, inject('postgres').app, { pool: { max: 1 } });
    const { letGo } = await busy(plain);
    await expect(prisma.$withLock(key, () => {}, { maxWait: 200 })).rejects.toMatchObject({ code: 'P2028' });
    let sent = '';
    proxy.onData('toServer', (data) => {
      sent += data.toString('latin1');
      return 'forward';
    });
    await letGo();
    // It comes behind whoever waited for the connection before.
    await plain.stock.count();
    expect(sent).not.toContain('fenced_lock');
    expect(sent).toContain('COMMIT');
  });

  test('at whatever moment after the lease is had leaves no connection behind', async () => {
    const redis = shop.redis();
    // Each call looks in Redis: none finds what the one before it has kept.
    const { prisma } = shop.client({ redis, pool: { max: 1 }, passOnAfter: 0 });
    const { key } = await shop.product(10);
    await prisma.$withLock(key, () => {});
    let answered = () => {};
    aroundScripts(redis, async ({ send }) => {
      const answer = await send();
      answered();
      return answer;
    });
    for (let steps = 0; steps < 60; steps++) {
      const abort = new AbortController();
      answered = () => void later(steps).then(() => abort.abort(new Error('struck')));
      await prisma.$withLock(key, () => {}, { signal: abort.signal }).catch(() => {});
      answered = () => {};
      await prisma.$withLock(key, () => {}, { maxWait: 2_000 });
    }
  });
});
