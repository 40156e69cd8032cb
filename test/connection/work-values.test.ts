import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { Prisma, PrismaClient } from '../generated/fence/client.js';
import { FenceWorld } from '../support/fence-world.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, Shop } from '../support/shop.js';

type Tx = Prisma.TransactionClient;

const AT = new Date('2026-02-28T23:59:59.123Z');
const BYTES = Uint8Array.from([0, 1, 92, 39, 255]);
const DATA = { text: 'it\'s "ß€🔒" \\', none: null, list: [1, [], { a: true }] };

/** Raw values of every kind. */
const work = (tx: Tx) => tx.$queryRaw`
  SELECT ${'it\'s "ß€🔒" \\'}::text AS text, ${7}::int AS int, ${1.5}::float8 AS float, ${true}::bool AS yes,
    ${9_007_199_254_740_993n}::int8 AS big, ${null}::text AS nothing, ${new Prisma.Decimal('1.10')}::numeric AS decimal,
    ${AT}::timestamptz AS at, ${BYTES}::bytea AS bytes, ${DATA}::jsonb AS json, ${['a', '"b"', '']}::text[] AS texts`;

describeWithShop('statements of the function of a lock', () => {
  const world = new FenceWorld('work_values');
  const shop = new Shop();

  const CLIENTS: ReadonlyArray<[string, () => PrismaPg]> = [
    ['a client', () => new PrismaPg({ connectionString: world.url, max: 2 })],
    ['a client whose adapter has no pool of pg', () => new PoollessPg({ connectionString: world.url, max: 2 })],
  ];

  function clientOn(adapter: PrismaPg) {
    const plain = new PrismaClient({ adapter });
    shop.closeLater(() => plain.$disconnect());
    return { plain, prisma: plain.$extends(fencedLock({ redis: shop.redis() })) };
  }

  test.each(CLIENTS)('have the results, and the errors, that they have without it: on %s', async (_, adapter) => {
    const { plain, prisma } = clientOn(adapter());
    const found = await prisma.$withLock('values', (tx) => work(tx as unknown as Tx));
    expect(found).toEqual(await plain.$transaction(work));
    const failing = (tx: Tx) => tx.member.create({ data: { name: 'alone', value: 1, teamId: -1 } });
    const reasonOf = (failed: Promise<unknown>) =>
      failed.catch(({ name, code, meta }: { name: string; code: string; meta: unknown }) => ({ name, code, meta }));
    const without = await reasonOf(plain.$transaction(failing));
    expect(without).toMatchObject({ code: 'P2003' });
    expect(await reasonOf(prisma.$withLock('failing', (tx) => failing(tx as unknown as Tx)))).toEqual(without);
  });

  test('that are answered with a value that its parser refuses reject, and the transaction goes on', async () => {
    const MACADDR = pg.types.builtins.MACADDR;
    const before = pg.types.getTypeParser(MACADDR);
    onTestFinished(() => pg.types.setTypeParser(MACADDR, before));
    pg.types.setTypeParser(MACADDR, () => {
      throw new Error('no such address');
    });
    const { prisma } = clientOn(new PrismaPg({ connectionString: world.url, max: 1 }));
    const seven = await prisma.$withLock('unreadable', async (tx) => {
      const unreadable = tx.$queryRaw`SELECT '08:00:2b:01:02:03'::macaddr AS m FROM generate_series(1, 2)`;
      await expect(unreadable).rejects.toThrow('no such address');
      return await tx.$queryRaw`SELECT 7 AS seven`;
    });
    expect(seven).toEqual([{ seven: 7 }]);
  });
});
