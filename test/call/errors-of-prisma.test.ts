import { expect, inject, test } from 'vitest';
import { freePort } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

// As docs/errors.md says: "Errors that come from Prisma".
describeWithShop('what comes from Prisma', () => {
  const shop = new Shop();

  const clientAt = (url: string) => shop.client({ pool: { connectionString: url } });

  test('P1003: a database that does not exist', async () => {
    const { plain, prisma } = clientAt(Object.assign(new URL(inject('postgres').app), { pathname: '/not_there' }).href);
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1003' });
    await expect(prisma.$withLock(key, () => {})).rejects.toMatchObject({ code: 'P1003' });
  });

  test('P1001: a server that cannot be reached; a lock tries again for its waitTime, and then says so', async () => {
    const { plain, prisma } = clientAt(
      Object.assign(new URL(inject('postgres').app), { port: String(await freePort()) }).href,
    );
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1001' });
    await expect(prisma.$withLock(key, () => {}, { waitTime: 300 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      message: expect.stringMatching(/^Postgres gave no usable answer/),
    });
  });
});
