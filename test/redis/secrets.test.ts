import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a login that Redis refuses', () => {
  const shop = new Shop();

  test.each([0, 20])('shows no password in an error or an event (retries: %s)', async (maxRetriesPerRequest) => {
    const url = Object.assign(new URL(inject('redis').url as string), { username: 'nobody', password: 'top-secret' });
    const redis = new Redis(url.href, { maxRetriesPerRequest });
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    const { prisma, events } = shop.client({ redis });
    const error = await prisma.$withLock('stock:1', () => {}, { waitTime: 600 }).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    const shown = inspect([error, events], { depth: 20, showHidden: true });
    expect(shown).not.toContain('top-secret');
    expect(shown).not.toContain('AUTH');
  });
});
