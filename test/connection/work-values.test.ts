import { PrismaPg } from '@prisma/adapter-pg';
import { expect, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { Prisma, PrismaClient } from '../generated/fence/client.js';
import { FenceWorld } from '../support/fence-world.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, Shop } from '../support/shop.js';

type Tx = Prisma.TransactionClient;

const AT = new Date('2026-02-28T23:59:59.123Z');
const BYTES = Uint8Array.from([0, 1, 92, 39, 255]);
const DATA = { text: 'it\'s "ß€🔒" \\', none: null, list: [1, [], { a: true }] };

const WORK: Record<string, (tx: Tx) => Promise<unknown>> = {
  'raw values of every kind': (tx) => tx.$queryRaw`
    SELECT ${'it\'s "ß€🔒" \\'}::text AS text, ${7}::int AS int, ${1.5}::float8 AS float, ${true}::bool AS yes,
      ${9_007_199_254_740_993n}::int8 AS big, ${null}::text AS nothing, ${new Prisma.Decimal('1.10')}::numeric AS decimal,
      ${AT}::timestamptz AS at, ${BYTES}::bytea AS bytes, ${DATA}::jsonb AS json, ${['a', '"b"', '']}::text[] AS texts`,

  'operations of a model, one after the other and at once': async (tx) => {
    const select = { name: true, value: true, data: true };
    const created = await tx.word.create({ data: { name: 'json', value: 1, data: DATA }, select });
    const many = await tx.word.createMany({
      data: [
        { name: 'list', value: 4, data: [1, null, 'a'] },
        { name: 'none', value: 5, data: Prisma.DbNull },
      ],
    });
    const updated = await tx.word.updateMany({ where: { value: { gt: 3 } }, data: { value: { increment: 1 } } });
    const where = { data: { path: ['text'], equals: DATA.text } };
    const found = await Promise.all([
      tx.word.findMany({ where, select }),
      tx.word.aggregate({ _sum: { value: true } }),
    ]);
    return { created, many, updated, found, nobody: await tx.word.deleteMany({ where: { name: 'nobody' } }) };
  },
};

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

  /** What the work has, in a transaction of which nothing stays. */
  async function undone(run: (work: (tx: Tx) => Promise<never>) => Promise<never>, work: (tx: Tx) => Promise<unknown>) {
    const done: { value?: unknown } = {};
    const rolledBack = new Error('rolled back');
    const ended = run(async (tx) => {
      done.value = await work(tx);
      throw rolledBack;
    });
    await expect(ended).rejects.toBe(rolledBack);
    return done.value;
  }

  test.each(CLIENTS)('have the results, and the errors, that they have without it: on %s', async (_, adapter) => {
    const { plain, prisma } = clientOn(adapter());
    for (const [what, work] of Object.entries(WORK)) {
      const without = await undone((body) => plain.$transaction(body), work);
      expect(await undone((body) => prisma.$withLock(what, (tx) => body(tx as unknown as Tx)), work)).toEqual(without);
    }
    const failing = (tx: Tx) => tx.member.create({ data: { name: 'alone', value: 1, teamId: -1 } });
    const reasonOf = (failed: Promise<unknown>) =>
      failed.catch(({ name, code, meta }: { name: string; code: string; meta: unknown }) => ({ name, code, meta }));
    const without = await reasonOf(plain.$transaction(failing));
    expect(without).toMatchObject({ code: 'P2003' });
    expect(await reasonOf(prisma.$withLock('failing', (tx) => failing(tx as unknown as Tx)))).toEqual(without);
  });
});
