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

describeWithShop('a URL that is not one of Redis', () => {
  const shop = new Shop();

  const FOREIGN = [
    'postgres://alice:top-secret@db.internal/x',
    'redis-sentinel://alice:top-secret@localhost',
    '"redis://alice:top-secret@localhost"',
    '/alice:top-secret@db.internal/a b',
    // Before 5.11, ioredis finds a host in some of them, and goes there.
  ].filter((url) => new Redis(url, { lazyConnect: true }).options.path?.includes('top-secret'));
  test.each(FOREIGN)('is not shown, and the error says how one begins: %s', async (url) => {
    const redis = new Redis(url);
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    const { prisma, events } = shop.client({ redis });
    const error = await prisma.$withLock('stock:1', () => {}, { waitTime: 600 }).catch((error: unknown) => error);
    expect(error).toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      message: expect.stringMatching(/connect ENOENT \(.*the URL must begin with redis:\/\/ or rediss:\/\//),
    });
    expect(inspect([error, events], { depth: 20, showHidden: true })).not.toMatch(/top-secret|alice/);
  });

  test('is told from a socket, whose path is shown', async () => {
    const redis = new Redis('/run/no-such.sock');
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    const { prisma } = shop.client({ redis });
    await expect(prisma.$withLock('stock:1', () => {}, { waitTime: 600 })).rejects.toThrow(
      'connect ENOENT /run/no-such.sock (there is no such socket',
    );
  });
});
