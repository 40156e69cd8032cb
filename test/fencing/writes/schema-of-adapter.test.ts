import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../generated/prisma/client.js';
import { FenceWorld, FRESHER, guardSql } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';

describeWithShop('two tables of one name in two schemas, of which only the one in `public` has a guard', () => {
  const world = new FenceWorld('fence_schema_of_adapter', undefined, []);
  const closing: Array<() => unknown> = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  beforeAll(async () => {
    const role = new URL(world.url).username;
    await world.admin.query(`
      CREATE SCHEMA tenant;
      CREATE TABLE tenant."Stock" (LIKE public."Stock" INCLUDING ALL);
      GRANT USAGE ON SCHEMA tenant TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON tenant."Stock" TO ${role};
      ${guardSql('public."Stock"', 'fence', 'allow')}`);
  });

  /** As libraries do that pool or log adapters: it has none of the properties of what it is around. */
  const around = (inner: PrismaPg) => ({
    provider: inner.provider,
    adapterName: inner.adapterName,
    connect: () => inner.connect(),
  });

  const KINDS = {
    'its own': (inner: PrismaPg) => inner,
    'a wrapper of its own': around,
  };

  for (const hadConnected of [false, true]) {
    test.each(Object.entries(KINDS))(
      `a client of the other schema holds its writes to the fence, with %s${hadConnected ? ', connected before' : ''}`,
      async (_, wrap) => {
        const adapter = wrap(new PrismaPg({ connectionString: world.url }, { schema: 'tenant' })) as PrismaPg;
        const redis = new Redis(inject('redis').url ?? '');
        const plain = new PrismaClient({ adapter });
        closing.push(
          () => plain.$disconnect(),
          () => redis.disconnect(),
        );
        if (hadConnected) await plain.$connect();
        const rescue = new PrismaPg({ connectionString: world.url });
        const prisma = plain.$extends(fencedLock({ redis, rescue }));
        const { rows } = await world.admin.query<{ id: number }>(
          'INSERT INTO tenant."Stock" (product, quantity, fence) VALUES (gen_random_uuid(), 10, $1) RETURNING id',
          [FRESHER],
        );
        const id = rows[0]?.id as number;
        const stale = prisma.$withLock(`tenant:${id}`, (tx) =>
          tx.stock.update({ where: { id }, data: { quantity: 9 } }),
        );
        await expect(stale).rejects.toMatchObject({ code: 'STALE_TOKEN' });
        expect(await plain.stock.findUnique({ where: { id } })).toMatchObject({ quantity: 10 });
      },
    );
  }
});
