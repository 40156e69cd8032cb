import { fakeLocks, faultLines, type TestServers, testServers } from 'prisma-extension-fenced-lock/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Client, createClient } from '../src/client';
import { redeem } from '../src/redeem';

describe('a coupon, without a server', () => {
  const unused = () => ({ findUniqueOrThrow: async () => ({ redeemed: false }), update: vi.fn(async () => {}) });

  test('that another request redeems just now is not waited for: 202', async () => {
    const coupon = unused();
    const locks = fakeLocks<Client>({ coupon });
    const other = await locks.hold('coupon:SPRING');
    expect(await redeem(locks.prisma, 'SPRING')).toBe(202);
    expect(coupon.update).not.toHaveBeenCalled();
    other.release();
    expect(await redeem(locks.prisma, 'SPRING')).toBe(200);
  });

  test('passes on that its lease was lost after the write', async () => {
    const locks = fakeLocks<Client>({ coupon: unused() });
    locks.next('coupon:SPRING').isLost({ after: 2 });
    await expect(redeem(locks.prisma, 'SPRING')).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });
});

describe('a coupon, on real servers', () => {
  let servers: TestServers;
  let one: ReturnType<typeof createClient>;
  let other: ReturnType<typeof createClient>;
  beforeAll(async () => {
    servers = await testServers();
    one = createClient(servers);
    other = createClient(servers);
  });
  beforeEach(async () => {
    await one.prisma.coupon.create({ data: { code: 'SPRING' } });
  });
  afterEach(() => servers.empty());
  afterAll(async () => {
    await Promise.all([one.close(), other.close()]);
    await servers.stop();
  });

  test('is redeemed once, by one of many requests at two processes', async () => {
    const requests = Array.from({ length: 8 }, (_, n) => redeem(n % 2 === 0 ? one.prisma : other.prisma, 'SPRING'));
    const statuses = await Promise.all(requests);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    // 202 while the lock of the first one is not released yet, which its caller does not wait for.
    expect(await redeem(one.prisma, 'SPRING')).not.toBe(200);
  });

  test('fault: its holder loses the lease, and the coupon is redeemed once all the same', async () => {
    const lines = await faultLines(servers);
    const first = one.prisma.$withLock('coupon:SPRING', async (tx) => {
      await tx.coupon.update({ where: { code: 'SPRING' }, data: { redeemed: true } });
      await lines.loseLease('coupon:SPRING');
    });
    const outcome = await first.then(
      () => 200,
      () => 'failed',
    );
    const status = await redeem(other.prisma, 'SPRING');
    expect([outcome, status].filter((each) => each === 200)).toHaveLength(1);
    await lines.close();
  });
});
