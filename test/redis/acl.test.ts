import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
/** The rights that the README names, after `on >password`. */
const RIGHTS = (/^ACL SETUSER shop on >password (.+)$/m.exec(README)?.[1] ?? '').split(' ');

describeWithShop('a Redis user with the rights of the README', () => {
  const shop = new Shop();
  const admin = shop.redis();

  async function user(name: string, rights: readonly string[]): Promise<Redis> {
    await admin.call('ACL', 'SETUSER', name, 'reset', 'on', '>password', ...rights);
    const redis = new Redis(inject('redis').url as string, {
      username: name,
      password: 'password',
      maxRetriesPerRequest: 0,
    });
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    return redis;
  }

  /** A turn that is renewed, waited for, and handed over by a wake-up. */
  async function handOver(
    redis: Redis,
    wake: 'pubsub' | 'poll' | 'spin' = 'pubsub',
  ): Promise<{ result: string; troubles: string[] }> {
    const { key } = await shop.product(1);
    const [holder, contender] = [shop.client({ redis, wake }), shop.client({ redis, wake })];
    const inside = gate();
    const held = holder.prisma.$withLock(
      key,
      async (_, lock) => {
        inside.open();
        await new Promise((resolve) => setTimeout(resolve, 300));
        lock.signal.throwIfAborted();
      },
      { leaseTime: 200, waitTime: 500 },
    );
    await Promise.race([inside.opened, held]);
    const contended = contender.prisma.$withLock(key, () => 'handed over', { waitTime: 3_000 });
    const [, result] = await Promise.all([held, contended]);
    // Also what nobody waits for.
    await Promise.all([holder.prisma.$disconnect(), contender.prisma.$disconnect()]);
    return { result, troubles: [...holder.events, ...contender.events].map(({ type }) => type) };
  }

  test('locks, renews, waits and hands over', async () => {
    expect(RIGHTS.length).toBeGreaterThan(5);
    expect(await handOver(await user('rights', RIGHTS))).toEqual({ result: 'handed over', troubles: [] });
  });

  test.each(['poll', 'spin'] as const)(
    'without any right of pub/sub, who waits can look by itself: %s',
    async (wake) => {
      const less = RIGHTS.filter((right) => !/publish|pubsub|subscribe|^&/.test(right));
      expect(less.length).toBe(RIGHTS.length - 5);
      expect(await handOver(await user(`silent-${wake}`, less), wake)).toEqual({ result: 'handed over', troubles: [] });
    },
  );

  test.each(
    RIGHTS.filter((right) =>
      /^\+(eval|get|set|pttl|pexpire|del|lpop|lpos|rpush|lrem|publish|pubsub\|numsub|subscribe)$|^[~&]/.test(right),
    ),
  )('with all but %s: refused, or reported', async (right) => {
    const less = RIGHTS.filter((other) => other !== right && !(right === '+eval' && other === '+evalsha'));
    const attempt = handOver(await user(`less ${RIGHTS.indexOf(right)}`.replace(' ', '-'), less));
    const outcome = await attempt.catch((error: unknown) => error as Error);
    if (!(outcome instanceof Error)) expect(outcome.troubles).not.toEqual([]);
  });
});
