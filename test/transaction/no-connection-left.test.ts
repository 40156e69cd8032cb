import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('where Postgres has no connection left for the role', () => {
  const role = `narrow_${randomUUID().replaceAll('-', '')}`;
  const narrow = () => Object.assign(new URL(inject('postgres').app), { username: role, password: role }).href;
  const shop = new Shop(() => ({
    postgres: narrow(),
    admin: inject('postgres').admin,
    redis: inject('redis').url as string,
  }));

  test.beforeAll(async () => {
    const { username } = new URL(inject('postgres').app);
    await shop.admin.query(`CREATE ROLE ${role} LOGIN PASSWORD '${role}' CONNECTION LIMIT 1 IN ROLE ${username}`);
    shop.closeLater(() => shop.admin.query(`DROP ROLE ${role}`));
  });

  /** Takes the role's only connection. */
  async function bystander(): Promise<pg.Client> {
    const session = new pg.Client({ connectionString: narrow() });
    await session.connect();
    return session;
  }

  const rescues = {
    'of the same role': () => undefined,
    'of another role': () => new PrismaPg({ connectionString: inject('postgres').app }),
  };
  const client = (rescue?: PrismaPg) => shop.client({ rescue, pool: { max: 1 } });

  test.each(Object.entries(rescues))('a lock waits until there is one, with a rescue %s', async (_, rescue) => {
    const session = await bystander();
    const { prisma, plain, events } = client(rescue());
    const left = prisma.$withLock(`narrow:${role}`, (tx) => tx.stock.count(), { waitTime: 20_000 });
    left.catch(() => {});
    await expect.poll(() => events.map(({ type }) => type)).toContain('postgres-unavailable');
    await session.end();
    expect(await left).toEqual(expect.any(Number));
    await plain.$disconnect();
  });

  test('one whose wait time is over, and one that does not wait, hear LOCK_UNAVAILABLE', async () => {
    const session = await bystander();
    const { prisma } = client();
    const ends = await Promise.allSettled([
      prisma.$withLock(`narrow:${role}`, () => {}, { waitTime: 200 }),
      prisma.$tryWithLock(`narrow:${role}:other`, () => {}),
      prisma.$lock(`narrow:${role}:third`, { waitTime: 200 }),
    ]);
    const told = { code: 'LOCK_UNAVAILABLE', message: expect.stringContaining('too many connections for role') };
    expect(ends).toMatchObject(Array.from({ length: 3 }, () => ({ status: 'rejected', reason: told })));
    await session.end();
  });

  test('calls share what the pool has, and none is refused', async () => {
    const { prisma, plain } = shop.client({ rescue: rescues['of another role'](), pool: { max: 5 } });
    const calls = Array.from({ length: 12 }, (_, n) =>
      prisma.$withLock(`narrow:${role}:${n}`, (tx) => tx.stock.count(), { waitTime: 20_000 }),
    );
    expect(await Promise.all(calls)).toHaveLength(12);
    await plain.$disconnect();
  });
});
