import pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { StaleTokenError } from '../../../src/index.js';
import { Prisma } from '../../generated/fence/client.js';
import { describeOfEachKind } from '../../support/client-kinds.js';
import { type FenceTx, FenceWorld, FRESHER } from '../../support/fence-world.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';
import { raise } from './rows.js';

/** What `as-prisma.test.ts` does not generate: odd arguments, the number of statements, and what others do meanwhile. */
describeOfEachKind('a write of a model without a guard', (kind) => {
  const world = new FenceWorld(`fence_pinned_${kind}`, undefined, [], kind);
  const { skip } = Prisma;
  let names = 0;
  const name = () => `pinned ${++names}`;

  // A claim of the row is a write of it: triggers fire, and Prisma sets `@updatedAt`.
  beforeAll(() =>
    world.admin.query(`
      CREATE FUNCTION people.next_version() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.number := OLD.number + 1; RETURN NEW; END $$;
      CREATE TRIGGER versions BEFORE UPDATE ON people."Note" FOR EACH ROW EXECUTE FUNCTION people.next_version();`),
  );

  /** Three members of a team, whose middle one is fresher, and what is left of them. */
  async function members() {
    const client = world.client();
    const team = await client.team.create({ data: { name: name() } });
    const data = [1, 2, 3].map((value) => ({ name: name(), value, teamId: team.id }));
    const rows = await client.member.createManyAndReturn({ data });
    const ids = rows.map(({ id }) => id) as [number, number, number];
    await world.overriding((session) => session.query(raise('Member', ids[1])));
    const left = () =>
      client.member.findMany({ where: { teamId: team.id }, orderBy: { id: 'asc' }, select: { value: true } });
    return { client, team, ids, left, untouched: [{ value: 1 }, { value: 50 }, { value: 3 }] };
  }

  /** Objects that are none of a literal: from other parsers, of a class, with inherited fields, with a `toJSON`. */
  const LIKE: Record<string, (fields: object) => object> = {
    'without a prototype': (fields) => Object.assign(Object.create(null), fields),
    'of a class': (fields) => Object.assign(new (class Dto {})(), fields),
    'that inherits': (fields) => Object.create(fields),
    'with its own toJSON': (fields) => ({ toJSON: () => fields }),
    'marked as Prisma marks raw parameters': (fields) => ({ __prismaRawParameters__: true, values: fields }),
  };

  test.each(Object.entries(LIKE))('is checked as it is sent, in an object %s', async (_, like) => {
    const { client, team, ids, left, untouched } = await members();
    const filter = () => like({ gt: 0 }) as never;
    const nested = like({ update: like({ where: { id: ids[1] }, data: { value: 77 } }) });
    const REFUSED: ReadonlyArray<(tx: FenceTx) => Promise<unknown>> = [
      // A filter in place of a key claims no row.
      (tx) => tx.member.upsert({ where: { id: filter() }, update: { value: 77 }, create: { name: name(), value: 9 } }),
      (tx) => tx.member.update({ where: { id: filter(), team: {} }, data: { value: 77 } }),
      (tx) => tx.member.delete({ where: like({ id: filter() }) as never }).notes(),
      (tx) => tx.team.update({ where: { id: team.id }, data: like({ members: nested }) as never }),
    ];
    for (const write of REFUSED) {
      // Swallowed, so that what it had sent would be committed.
      await client.$withLock('like', (tx) => write(tx).catch(() => {})).catch(() => {});
      expect(await left()).toEqual(untouched);
    }
    await client.$withLock('like', async (tx) => {
      await tx.member.update(like({ where: like({ id: ids[0], value: 1 }), data: like({ value: 8 }) }) as never);
      const missed = tx.member.delete({ where: like({ id: ids[2], value: 4 }) as never });
      await expect(missed).rejects.toMatchObject({ code: 'P2025' });
    });
    expect(await left()).toEqual([{ value: 8 }, { value: 50 }, { value: 3 }]);
  });

  test('is not sent without its condition by what changes behind its `await`', async () => {
    const { client, team, ids, left, untouched } = await members();
    const data: Record<string, unknown> = { name: name() };
    const held = client.$withLock('changed', async (tx) => {
      const sent = tx.team.update({ where: { id: team.id }, data }).then(() => {});
      data['members'] = { update: { where: { id: ids[1] }, data: { value: 77 } } };
      await sent;
    });
    await held.catch(() => {});
    expect(await left()).toEqual(untouched);
  });

  const withProto = <T extends object>(args: T): T =>
    Object.defineProperty(args, '__proto__', { value: { value: 99 }, enumerable: true });
  const LEFT_OUT: Record<string, (tx: FenceTx, id: number) => PromiseLike<unknown>> = {
    'an own __proto__, of a claimed row': (tx, id) =>
      tx.word.update({ where: withProto({ id, update: { none: {} } }), data: withProto({ parent: id }) }),
    'Prisma.skip': (tx, id) =>
      tx.word.update({
        where: { id, AND: skip },
        data: { parent: id, fence: skip, update: skip },
        select: skip as never,
      }),
  };

  test.each(Object.entries(LEFT_OUT))('is written without what Prisma leaves out: %s', async (_, write) => {
    const client = world.client();
    const { id } = await client.word.create({ data: { name: name(), value: 1 } });
    await client.$withLock('left out', async (tx) => await write(tx, id));
    expect(await client.word.findUnique({ where: { id } })).toMatchObject({ parent: id, value: 1 });
  });

  const NO_ROW: Record<string, (tx: FenceTx, where: never) => Promise<unknown>> = {
    'delete, with an include': (tx, where) => tx.note.delete({ where, include: { member: true } }),
    'update, with a relation': (tx, where) =>
      tx.note.update({ where: { ...(where as object), member: {} } as never, data: { value: 99 } }),
    update: (tx, where) => tx.note.update({ where, data: { value: 99 } }),
    upsert: (tx, where) =>
      tx.note.upsert({ where, update: { value: 99 }, create: { memberId: 1, number: 9, name: 'made', value: 9 } }),
  };

  // As they come out of the JSON of a request.
  test.each(Object.entries(NO_ROW))('writes none, where its key is none: %s', async (_, write) => {
    const { client, ids } = await members();
    const [memberId] = ids;
    await client.note.createMany({ data: [1, 2].map((number) => ({ memberId, number, name: name(), value: 1 })) });
    for (const where of [
      { memberId_number: { memberId, number: { gt: 0 } } },
      { memberId_number: { memberId, number: null } },
      { memberId_number: { memberId, number: 1 }, title: { name: { contains: 'p' }, number: 1 } },
      { memberId: { equals: memberId }, number: { gt: 1 } },
      { memberId_number: {} },
      {},
    ]) {
      await client.$withLock('unnamed', async (tx) => {
        await expect(write(tx, where as never)).rejects.toMatchObject({ name: 'PrismaClientValidationError' });
      });
      expect(await client.note.count({ where: { memberId, value: 1, fence: 0 } }), JSON.stringify(where)).toBe(2);
    }
  });

  test.each([
    ['updateMany', null],
    ['updateMany', { where: undefined, data: { value: 2 } }],
    ['deleteMany', null],
    ['deleteMany', { where: undefined }],
    ['deleteMany', { where: [] }],
    ['updateManyAndReturn', { where: { OR: null }, data: { value: 2 } }],
  ] as const)('writes none, where its condition is none: %s %j', async (operation, args) => {
    // Prisma itself gives an extension `{}` in place of `null`.
    if (kind === 'extended' && args === null) return;
    const client = world.client();
    await client.word.create({ data: { name: name(), value: 1 } });
    const before = await client.word.count({ where: { value: { not: 2 } } });
    const held = client.$withLock('none', (tx) => (tx.word[operation] as (args: unknown) => Promise<unknown>)(args));
    await expect(held).rejects.toThrow();
    expect(await client.word.count({ where: { value: { not: 2 } } })).toBe(before);
  });

  test.each(['updateMany', 'updateManyAndReturn', 'deleteMany'] as const)(
    'of rows that are found by what it changes skips no fresher one: %s',
    async (operation) => {
      const client = world.client();
      const boss = await client.member.create({ data: { name: name(), value: 1 } });
      const report = await client.member.create({ data: { name: name(), value: 1, bossId: boss.id, fence: FRESHER } });
      const where = { OR: [{ id: boss.id }, { boss: { id: boss.id, value: 1 } }] };
      const args = operation === 'deleteMany' ? { where } : { where, data: { value: 2 } };
      const write = (tx: FenceTx) => (tx.member[operation] as (args: object) => Promise<unknown>)(args);
      await expect(client.$withLock('boss', write)).rejects.toBeInstanceOf(StaleTokenError);
      expect(await client.member.count({ where: { id: { in: [boss.id, report.id] }, value: 1 } })).toBe(2);
    },
  );

  test('of many finds the fresher ones of a list that Prisma sends in several statements', async () => {
    const { client, ids } = await members();
    const absent = Array.from({ length: 40_000 }, (_, n) => -1 - n);
    const where = { id: { in: [ids[1], ...absent, ids[0]] } };
    const held = client.$withLock('list', (tx) => tx.member.updateMany({ where, data: { value: 77 } }));
    await expect(held).rejects.toMatchObject({ code: 'STALE_TOKEN', model: 'Member' });
  });

  const WAITING: Record<string, (tx: FenceTx, id: number) => Promise<unknown>> = {
    'update, with a relation': (tx, id) => tx.member.update({ where: { id, notes: { none: {} } }, data: { value: 7 } }),
    upsert: (tx, id) => tx.member.upsert({ where: { id }, update: { value: 7 }, create: { name: name(), value: 7 } }),
    'delete, with an include': (tx, id) => tx.member.delete({ where: { id }, include: { team: true } }),
    updateMany: (tx, id) => tx.member.updateMany({ where: { id }, data: { value: 7 } }),
    'deleteMany, with a relation': (tx, id) => tx.member.deleteMany({ where: { id, notes: { none: {} } } }),
  };

  test.each(Object.entries(WAITING))(
    'is refused where the row becomes fresher while it waits: %s',
    async (_, write) => {
      const { client, ids, left } = await members();
      let held: Promise<unknown> = Promise.resolve();
      await world.overriding(async (session) => {
        await session.query(raise('Member', ids[0]));
        held = client.$withLock('waits', (tx) => write(tx, ids[0])).catch((error: unknown) => error);
        await world.blocked();
      });
      expect(await held).toMatchObject({ code: 'STALE_TOKEN', model: 'Member' });
      expect((await left())[0]).toEqual({ value: 50 });
    },
  );
});

describeWithShop('a fresher row that comes behind a claim which met none', () => {
  const shop = new Shop();
  type Tx = Pick<ShopClient, 'stock'>;
  const WRITES: Record<string, (tx: Tx, product: string) => Promise<unknown>> = {
    'update, with a relation in its condition': (tx, product) =>
      tx.stock.update({ where: { product, orders: { none: { quantity: 5 } } }, data: { quantity: 9 } }),
    'delete, with a selection': (tx, product) => tx.stock.delete({ where: { product }, select: { id: true } }),
  };

  /** A connection that calls `then` when the look for a fresher row was answered, and hands on the answer afterwards. */
  function pausingBehindTheLook(then: () => Promise<void>): typeof pg.Client {
    return class extends pg.Client {
      override query(...args: [never]): never {
        const query = args[0] as { text?: string; callback?: (...answer: unknown[]) => void };
        const { text = '', callback } = query;
        if (callback && /^SELECT .*"fence" > \$/.test(text))
          query.callback = (...answer) => void then().then(() => callback(...answer));
        return super.query(...args) as never;
      }
    };
  }

  test.each(Object.entries(WRITES))(
    'is not met by the write, which is refused as stale: %s',
    async (product, write) => {
      let came = 0;
      const Client = pausingBehindTheLook(async () => {
        // The claim's look for a fresher row is the last that comes before the write.
        if (++came > 1) return;
        await shop.admin.query('INSERT INTO "Stock" (product, quantity, fence) VALUES ($1, 50, $2)', [
          product,
          FRESHER,
        ]);
      });
      const { prisma } = shop.client({ pool: { Client } as pg.PoolConfig });
      await expect(prisma.$withLock(product, (tx) => write(tx, product))).rejects.toBeInstanceOf(StaleTokenError);
      // The look behind the write has found it.
      expect(came).toBe(2);
      const { rows } = await shop.admin.query('SELECT quantity, fence FROM "Stock" WHERE product = $1', [product]);
      expect(rows).toEqual([{ quantity: 50, fence: String(FRESHER) }]);
    },
  );
});
