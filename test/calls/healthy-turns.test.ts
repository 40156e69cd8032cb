import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { leaseName } from '../lease/actors.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { slowCommit } from './slow-commit.js';

/** Longer than an admission waits before it asks who is in its way, and has that one ended. */
const LONGER_THAN_PATIENCE = 1_500;

describeWithShop('turns of one process', () => {
  const shop = new Shop();

  test('do not end each other: a COMMIT may take longer than the next admission has patience', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, events } = shop.client();
    const slow = await slowCommit(shop);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.$executeRawUnsafe(slow.insert());
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    const next = prisma.$withLock(key, async (tx) => (await tx.stock.findUniqueOrThrow({ where: { id } })).quantity);
    await shop.blocked('COMMIT');
    await shop.blocked('fenced_lock.admit');
    await pause(LONGER_THAN_PATIENCE);
    await slow.goOn();
    await held;
    expect(await next).toBe(9);
    expect(events.filter(({ type }) => type === 'backend-ended')).toEqual([]);
  });

  test('do not end each other, also where the next one has another key that it got later', async () => {
    const { id, key } = await shop.product(10);
    const [one, two] = [`${key}:1`, `${key}:2`];
    const { prisma, events } = shop.client();
    const lock = await shop.client().prisma.$lock(two);
    const slow = await slowCommit(shop);
    const held = prisma.$withLock(one, async (tx) => {
      await tx.$executeRawUnsafe(slow.insert());
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    const next = prisma.$withLock(
      [one, two],
      async (tx) => (await tx.stock.findUniqueOrThrow({ where: { id } })).quantity,
    );
    await shop.blocked('COMMIT');
    await lock.release();
    await shop.blocked('fenced_lock.admit');
    await pause(LONGER_THAN_PATIENCE);
    await slow.goOn();
    await held;
    expect(await next).toBe(9);
    expect(events.filter(({ type }) => type === 'backend-ended')).toEqual([]);
  });

  test('an early one hears its signal at once, not when the COMMIT before has ended', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    const slow = await slowCommit(shop);
    const held = prisma.$withLock(key, (tx) => tx.$executeRawUnsafe(slow.insert()));
    const caller = new AbortController();
    const next = prisma.$withLock(key, () => 'in', { signal: caller.signal });
    await shop.blocked('fenced_lock.admit');
    caller.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await shop.blocked('COMMIT');
    await slow.goOn();
    await held;
  });
});

describeWithShop('several keys', () => {
  const shop = new Shop();

  test('a lease that is lost while the others are waited for ends the waiting, and is told as that', async () => {
    const { key } = await shop.product(1);
    const [one, two] = [`${key}:1`, `${key}:2`];
    const { prisma } = shop.client();
    const lock = await shop.client().prisma.$lock(two);
    const both = prisma.$withLock([one, two], () => 'both', { leaseTime: 300 });
    const settled = both.catch((error: unknown) => error);
    const redis = shop.redis();
    while ((await redis.exists(leaseName(one))) === 0) await pause(5);
    await redis.del(leaseName(one));
    expect(await settled).toMatchObject({ code: 'LOCK_LOST', key: one });
    await lock.release();
  });
});

describeWithShop('a released handle', () => {
  const shop = new Shop();

  test('does not hear of what becomes of the lease in the next turn', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const lock = await prisma.$lock(key, { leaseTime: 300 });
    const inside = gate();
    const next = prisma.$withLock(
      key,
      async (_, held) => {
        inside.open();
        await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
      },
      { leaseTime: 300 },
    );
    await lock.release();
    await inside.opened;
    await shop.redis().del(leaseName(key));
    await expect(next).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(lock.signal.aborted).toBe(false);
  });
});
