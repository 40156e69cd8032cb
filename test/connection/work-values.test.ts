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
const DATA = { text: 'it\'s "ß€🔒" \\', none: null, list: [1, [], { a: true }], empty: {} };

/** Of which some values are sent by this package, and the rest by pg, which converts them. */
const WORK: Record<string, (tx: Tx) => Promise<unknown>> = {
  'raw values of every kind': (tx) => tx.$queryRaw`
    SELECT ${'it\'s "ß€🔒" \\'}::text AS text, ${''}::text AS empty, ${7}::int AS int, ${1.5}::float8 AS float,
      ${9_007_199_254_740_993n}::int8 AS big, ${true}::bool AS yes, ${null}::text AS nothing,
      ${new Prisma.Decimal('1.10')}::numeric AS decimal, ${AT}::timestamptz AS at, ${AT}::date AS day,
      ${BYTES}::bytea AS bytes, ${Buffer.from(BYTES)}::bytea AS buffer, ${DATA}::jsonb AS json`,

  'raw lists': (tx) => tx.$queryRaw`
    SELECT ${[1, 2]}::int[] AS ints, ${['a', '"b"', '', '{c,d}', '\\']}::text[] AS texts, ${[true, false]}::bool[] AS bools,
      ${[1n, 2n]}::int8[] AS bigs, ${[AT]}::timestamptz[] AS times, ${[]}::int[] AS none,
      (SELECT sum(n)::int FROM unnest(${[1, 2, 3]}::int[]) AS n) AS sum`,

  'raw values, by the method that takes a text': (tx) =>
    tx.$queryRawUnsafe('SELECT $1::jsonb AS json, $2::text AS text', DATA, 'a'),

  'rows of a table with columns of every kind': async (tx) => {
    await tx.$executeRaw`CREATE TEMP TABLE kinds (id int, bytes bytea, at timestamptz, ints int[], texts text[], data jsonb)
      ON COMMIT DROP`;
    const counts = [
      await tx.$executeRaw`INSERT INTO kinds VALUES (1, ${BYTES}, ${AT}, ${[1, 2]}, ${['a', 'b']}, ${DATA}),
        (2, NULL, NULL, NULL, NULL, NULL)`,
      await tx.$executeRaw`UPDATE kinds SET bytes = ${BYTES} WHERE id = ANY(${[1, 2, 3]})`,
      await tx.$executeRaw`DELETE FROM kinds WHERE id = ${3}`,
      await tx.$executeRawUnsafe('DELETE FROM kinds WHERE id = $1', 3),
    ];
    return { counts, rows: await tx.$queryRaw`SELECT * FROM kinds ORDER BY id` };
  },

  'fields of models': async (tx) => {
    const select = { name: true, value: true, data: true };
    const created = await tx.word.create({ data: { name: 'json', value: 1, data: DATA }, select });
    const upsert = {
      where: { name: 'json' },
      create: { name: 'json', value: 2 },
      update: { value: 3, data: Prisma.JsonNull },
    };
    return {
      created,
      upserted: await tx.word.upsert({ ...upsert, select }),
      many: await tx.word.createMany({
        data: [
          { name: 'list', value: 4, data: [1, null, 'a'] },
          { name: 'none', value: 5, data: Prisma.DbNull },
        ],
      }),
      returned: await tx.word.createManyAndReturn({ data: [{ name: 'text', value: 6, data: 'a' }], select }),
      updated: await tx.word.updateMany({ where: { value: { gt: 3 } }, data: { value: { increment: 1 } } }),
      found: await tx.word.findMany({ where: { data: { path: ['text'], equals: DATA.text } }, select }),
      listed: await tx.word.findMany({
        where: { name: { in: ['list', 'none', 'text', 'nobody'] } },
        orderBy: { name: 'asc' },
        select,
      }),
      none: await tx.word.findFirst({ where: { name: 'nobody' } }),
      sum: await tx.word.aggregate({ _sum: { value: true }, _count: true, _avg: { value: true } }),
      groups: await tx.word.groupBy({ by: ['value'], _count: true, orderBy: { value: 'asc' } }),
      deleted: await tx.word.deleteMany({ where: { value: { gt: 5 } } }),
      nobody: await tx.word.deleteMany({ where: { name: 'nobody' } }),
    };
  },

  'lists that are longer than one statement can have values': async (tx) => {
    await tx.word.createMany({ data: Array.from({ length: 20 }, (_, n) => ({ name: `word ${n}`, value: n })) });
    const values = Array.from({ length: 40_000 }, (_, n) => n * 2);
    const found = await tx.word.findMany({ where: { value: { in: values } }, select: { name: true } });
    return found.map(({ name }) => name).toSorted();
  },

  'operations at once': (tx) =>
    Promise.all([
      tx.word.count(),
      tx.$queryRaw`SELECT ${BYTES}::bytea AS bytes`,
      tx.$queryRaw`SELECT ${1}::int AS plain`,
      tx.$queryRaw`SELECT ${[1]}::int[] AS list`,
    ]),
};

const FAILING: Record<string, (tx: Tx) => Promise<unknown>> = {
  'a row that is there': (tx) =>
    tx.word.createMany({
      data: [
        { name: 'twice', value: 1 },
        { name: 'twice', value: 2 },
      ],
    }),
  'no row': (tx) => tx.word.findUniqueOrThrow({ where: { name: 'nobody' } }),
  'a value that is none, by a plain statement': (tx) => tx.$queryRaw`SELECT ${'one'}::int`,
  'a value that is none, by one of pg': (tx) => tx.$queryRaw`SELECT ${['one']}::int[]`,
  'a foreign key': (tx) => tx.member.create({ data: { name: 'alone', value: 1, teamId: -1 } }),
  'a table that is not there': (tx) => tx.$queryRaw`SELECT ${BYTES}::bytea FROM nowhere`,
};

describeWithShop('statements of the function of a lock', () => {
  const world = new FenceWorld('work_values');
  const shop = new Shop();

  const CLIENTS: Record<string, () => PrismaPg> = {
    'a client': () => new PrismaPg({ connectionString: world.url, max: 2 }),
    'a client that names its statements': () => {
      const names = new Map<string, string>();
      const statementNameGenerator = ({ sql }: { sql: string }) => {
        const name = names.get(sql) ?? `s${names.size}`;
        names.set(sql, name);
        return name;
      };
      return new PrismaPg({ connectionString: world.url, max: 1 }, { statementNameGenerator });
    },
    'a client whose adapter has no pool of pg': () => new PoollessPg({ connectionString: world.url, max: 2 }),
  };
  const made = new Map<string, ReturnType<typeof clientOn>>();

  function clientOn(adapter: PrismaPg) {
    const plain = new PrismaClient({ adapter });
    shop.closeLater(() => plain.$disconnect());
    return { plain, prisma: plain.$extends(fencedLock({ redis: shop.redis() })) };
  }

  function clientsOf(name: string) {
    const client = made.get(name) ?? clientOn((CLIENTS[name] as () => PrismaPg)());
    made.set(name, client);
    return client;
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

  const cases = <T>(works: Record<string, T>) =>
    Object.keys(CLIENTS).flatMap((name) => Object.entries(works).map(([what, work]) => [what, name, work] as const));

  test.each(cases(WORK))('have the results that they have without it: %s, on %s', async (what, name, work) => {
    const { plain, prisma } = clientsOf(name);
    const without = await undone((body) => plain.$transaction(body), work);
    // The second time, the names are known.
    for (let time = 0; time < 2; time++) {
      expect(await undone((body) => prisma.$withLock(what, (tx) => body(tx as unknown as Tx)), work)).toEqual(without);
    }
  });

  test.each(cases(FAILING))('fail as they fail without it: %s, on %s', async (what, name, work) => {
    const { plain, prisma } = clientsOf(name);
    const reasonOf = (failing: Promise<unknown>) =>
      failing.then(
        () => expect.fail('it did not fail'),
        (error: { name: string; code: string; meta: unknown }) => ({
          name: error.name,
          code: error.code,
          meta: error.meta,
        }),
      );
    const without = await reasonOf(plain.$transaction(work));
    expect(await reasonOf(prisma.$withLock(what, (tx) => work(tx as unknown as Tx)))).toEqual(without);
    expect(without).toMatchObject({ code: expect.stringMatching(/^P\d+$/) });
  });

  test('read back what they have written, bytes, times, lists and JSON', async () => {
    const { prisma } = clientsOf('a client');
    const rows = await prisma.$withLock(
      'kinds',
      (tx) => tx.$queryRaw`
      SELECT ${BYTES}::bytea AS bytes, ${AT}::timestamptz AS at, ${[1, 2]}::int[] AS ints, ${['a', '"']}::text[] AS texts,
        ${DATA}::jsonb AS data`,
    );
    expect(rows).toEqual([{ bytes: BYTES, at: AT, ints: [1, 2], texts: ['a', '"'], data: DATA }]);
  });
});
