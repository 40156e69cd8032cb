import { makeTypedQueryFactory } from '@prisma/client/runtime/client';
import { beforeAll, expect, test } from 'vitest';
import type { LockTx } from '../../../src/index.js';
import { Prisma } from '../../generated/fence/client.js';
import { describeOfEachKind } from '../../support/client-kinds.js';
import { type FenceTx, FenceWorld, FRESHER } from '../../support/fence-world.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';
import { raise } from './rows.js';

const { skip } = Prisma;
let names = 0;
const name = () => `word ${++names}`;

describeOfEachKind('a write of a model without a guard means what it means to Prisma', (of) => {
  const world = new FenceWorld(`fence_as_prisma_${of}`, undefined, [], of);

  /** A row, and what a write of it gives. */
  async function run<T>(write: (tx: FenceTx, id: number) => Promise<T>): Promise<T> {
    const { id } = await world.client().word.create({ data: { name: name(), value: 1 } });
    return await world.client().$withLock(`word:${id}`, (tx) => write(tx, id));
  }

  const EMPTY: Record<string, (tx: FenceTx) => Promise<unknown>> = {
    updateMany: (tx) => tx.word.updateMany({ where: undefined as never, data: { value: 2 } }),
    updateManyAndReturn: (tx) => tx.word.updateManyAndReturn({ where: undefined as never, data: { value: 2 } }),
    deleteMany: (tx) => tx.word.deleteMany({ where: undefined as never }),
  };

  test.each(Object.entries(EMPTY))(
    'an explicit `undefined` in place of the condition is refused, where Prisma is strict: %s',
    async (_, write) => {
      await expect(run(write)).rejects.toThrow('explicitly `undefined` values are not allowed');
      expect(await world.client().word.count({ where: { value: 2 } })).toBe(0);
    },
  );

  const SKIPPED: Record<string, [value: number, (tx: FenceTx, id: number) => PromiseLike<unknown>]> = {
    'the fence of an update': [3, (tx, id) => tx.word.update({ where: { id }, data: { value: 3, fence: skip } })],
    'a relation of an update': [4, (tx, id) => tx.word.update({ where: { id }, data: { value: 4, update: skip } })],
    'the AND of an update': [5, (tx, id) => tx.word.update({ where: { id, AND: skip }, data: { value: 5 } })],
    'the limit of an updateMany': [
      6,
      (tx, id) => tx.word.updateMany({ where: { id, name: skip }, data: { value: 6 }, limit: skip }),
    ],
    'parts of an upsert': [
      7,
      (tx, id) =>
        tx.word.upsert({
          where: { id, connect: skip },
          update: { value: 7, fence: skip },
          create: { name: name(), value: 1, fence: skip },
          select: skip as never,
        }),
    ],
    'the fence of rows of a createMany': [
      1,
      (tx) => tx.word.createMany({ data: [{ name: name(), value: 1, fence: skip, where: skip }] }),
    ],
    'the condition of an updateManyAndReturn': [
      8,
      (tx) => tx.word.updateManyAndReturn({ where: skip, data: { value: 8 }, select: { id: true } }),
    ],
  };

  test.each(Object.entries(SKIPPED))('`Prisma.skip` leaves it out: %s', async (_, [value, write]) => {
    const id = await run(async (tx, id) => {
      await write(tx, id);
      return id;
    });
    expect(await world.client().word.findUnique({ where: { id } })).toMatchObject({ value });
  });

  /** As arguments come from JSON. */
  const withProto = <T extends object>(args: T): T =>
    Object.defineProperty(args, '__proto__', { value: { value: 99 }, enumerable: true });

  const WITH_PROTO: Record<string, (tx: FenceTx, id: number) => PromiseLike<unknown>> = {
    update: (tx, id) => tx.word.update({ where: withProto({ id }), data: withProto({ parent: id }) }),
    'update, with a relation': (tx, id) =>
      tx.word.update({ where: withProto({ id, update: { none: {} } }), data: withProto({ parent: id }) }),
    updateMany: (tx, id) => tx.word.updateMany({ where: withProto({ id }), data: withProto({ parent: id }) }),
    upsert: (tx, id) =>
      tx.word.upsert({
        where: withProto({ id }),
        update: withProto({ parent: id }),
        create: { name: name(), value: 1 },
      }),
    create: (tx, id) => tx.word.create({ data: withProto({ name: name(), value: 1, parent: id }) }),
  };

  test.each(Object.entries(WITH_PROTO))('an own `__proto__` is left out: %s', async (_, write) => {
    const id = await run(async (tx, id) => {
      await write(tx, id);
      return id;
    });
    expect(await world.client().word.findFirst({ where: { parent: id } })).toMatchObject({ value: 1 });
  });

  // A claim of the row is a write of it: triggers fire, and Prisma sets `@updatedAt`.
  beforeAll(() =>
    world.admin.query(`
      CREATE FUNCTION people.next_version() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.number := OLD.number + 1; RETURN NEW; END $$;
      CREATE TRIGGER versions BEFORE UPDATE ON people."Note" FOR EACH ROW EXECUTE FUNCTION people.next_version();`),
  );

  const CONDITIONAL: Record<string, (tx: FenceTx, memberId: number) => PromiseLike<unknown>> = {
    'update, with a relation': (tx, memberId) =>
      tx.note.update({
        where: { title: { name: 'n', number: 1 }, memberId, member: { id: memberId } },
        data: { value: 5 },
      }),
    'update, with a filter and the fence': (tx, memberId) =>
      tx.note.update({
        where: {
          memberId_number: { memberId, number: 1 },
          number: { lt: 2 },
          fence: 0n,
          AND: { fence: 0n, number: 1 },
        },
        data: { value: 5 },
        include: { member: true },
      }),
    upsert: (tx, memberId) =>
      tx.note.upsert({
        where: { memberId_number: { memberId, number: 1 }, number: 1, value: { gte: 1 } },
        update: { value: 5 },
        create: { memberId, number: 100, name: 'made', value: 5 },
      }),
    'delete, with an include': (tx, memberId) =>
      tx.note.delete({
        where: { memberId_number: { memberId, number: 1 }, number: 1, NOT: { fence: { gt: 0n } } },
        include: { member: true },
      }),
  };

  test.each(Object.entries(CONDITIONAL))(
    'a condition on what a trigger changes by every write of the row is met: %s',
    async (kind, write) => {
      const client = world.client();
      const { id } = await client.member.create({ data: { name: name(), value: 1 } });
      await client.note.create({ data: { memberId: id, number: 1, name: 'n', value: 1 } });
      await client.note.create({ data: { memberId: id, number: 50, name: 'other', value: 1 } });
      await client.$withLock(`member:${id}`, (tx) => write(tx, id));
      const rows = await client.note.findMany({ where: { memberId: id }, orderBy: { name: 'asc' } });
      const others = { name: 'other', number: 50, value: 1 };
      expect(rows).toMatchObject(kind.startsWith('delete') ? [others] : [{ name: 'n', value: 5 }, others]);
      await client.note.deleteMany({ where: { memberId: id } });
    },
  );

  test('one that another row meets is not met', async () => {
    const client = world.client();
    const { id: memberId } = await client.member.create({ data: { name: name(), value: 1 } });
    const where = { memberId_number: { memberId, number: 1 } };
    await client.note.create({ data: { memberId, number: 1, name: 'n', value: 1 } });
    for (const more of [{ number: 2 }, { value: { gt: 1 } }, { member: { id: -memberId } }, { NOT: { fence: 0n } }]) {
      const write = client.$withLock(`member:${memberId}`, (tx) =>
        tx.note.delete({ where: { ...where, ...more }, include: { member: true } }),
      );
      await expect(write).rejects.toMatchObject({ code: 'P2025' });
    }
    expect(await client.note.count({ where: { memberId } })).toBe(1);
  });
});

describeOfEachKind('the arguments of a write without a guard are those that were checked', (kind) => {
  const world = new FenceWorld(`fence_arguments_${kind}`, undefined, [], kind);
  const RAISED = { value: 50, fence: FRESHER };

  /** Objects that are none of a literal: from other parsers, of a class, with inherited fields, with a `toJSON`. */
  const OTHER: Record<string, (fields: object) => object> = {
    'without a prototype': (fields) => Object.assign(Object.create(null), fields),
    'of a class': (fields) => Object.assign(new (class Dto {})(), fields),
    'that inherits': (fields) => Object.create(fields),
    'with its own toJSON': (fields) => ({ toJSON: () => fields }),
    'with a toJSON that gives raw parameters': (fields) => ({
      toJSON: () => ({ __prismaRawParameters__: true, values: fields }),
    }),
    'marked as Prisma marks raw parameters': (fields) => ({ __prismaRawParameters__: true, values: fields }),
  };
  const others = Object.entries(OTHER);

  /** Three members, whose middle one is fresher, and what is left of them. */
  async function members() {
    const client = world.client();
    const team = await client.team.create({ data: { name: name() } });
    const rows = [];
    for (const value of [1, 2, 3])
      rows.push(await client.member.create({ data: { name: name(), value, teamId: team.id } }));
    const ids = rows.map(({ id }) => id) as [number, number, number];
    await world.overriding((session) => session.query(raise('Member', ids[1])));
    const left = () =>
      client.member.findMany({
        where: { teamId: team.id },
        orderBy: { id: 'asc' },
        select: { value: true, fence: true },
      });
    const untouched = [{ value: 1, fence: 0n }, RAISED, { value: 3, fence: 0n }];
    return { client, team, ids, left, untouched };
  }

  test.each(others)('a filter in place of a key claims no row, as an object %s', async (_, like) => {
    const { client, left, untouched } = await members();
    const filter = () => like({ gt: 0 }) as never;
    const create = { name: name(), value: 9 };
    const WRITES: ReadonlyArray<(tx: FenceTx) => Promise<unknown>> = [
      (tx) => tx.member.upsert({ where: { id: filter() }, update: { value: 77 }, create }),
      (tx) => tx.member.update({ where: { id: filter(), team: {} }, data: { value: 77 } }),
      (tx) => tx.member.delete({ where: { id: filter() }, include: { notes: true } }),
      (tx) => tx.member.delete({ where: like({ id: filter() }) as never }).notes(),
    ];
    for (const write of WRITES) {
      // Swallowed, so that what it had sent would be committed.
      await client.$withLock('filter', (tx) => write(tx).catch(() => {})).catch(() => {});
      expect(await left()).toEqual(untouched);
    }
  });

  test.each(others)('a condition and the data are met, in an object %s', async (_, like) => {
    const { client, ids, left } = await members();
    const token = await client.$withLock('data', async (tx, lock) => {
      await tx.member.update(like({ where: like({ id: ids[0], value: 1 }), data: like({ value: 8 }) }) as never);
      const missed = tx.member.delete({ where: like({ id: ids[2], value: 4 }) as never });
      await expect(missed).rejects.toMatchObject({ code: 'P2025' });
      return lock.token;
    });
    expect(await left()).toEqual([{ value: 8, fence: token }, RAISED, { value: 3, fence: 0n }]);
  });

  test.each(others)('a nested write of a model that has no condition is refused, in an object %s', async (_, like) => {
    const { client, team, ids, left, untouched } = await members();
    const members_ = like({ update: like({ where: { id: ids[1] }, data: { value: 77 } }) });
    for (const data of [like({ members: members_ }), { name: 'x', members: members_ }]) {
      const held = client.$withLock('nested', (tx) => tx.team.update({ where: { id: team.id }, data: data as never }));
      await expect(held).rejects.toMatchObject({ code: 'INVALID_OPTION' });
      expect(await left()).toEqual(untouched);
    }
  });

  test('`Prisma.skip` in a compound key names no row', async () => {
    const { client, ids } = await members();
    const [memberId] = ids;
    await client.note.createMany({ data: [1, 2].map((number) => ({ memberId, number, name: name(), value: 1 })) });
    const where = { memberId_number: { memberId, number: skip as never } };
    const create = { memberId, number: 9, name: name(), value: 9 };
    const held = client.$withLock('skip', (tx) => tx.note.upsert({ where, update: { value: 77 }, create }));
    await expect(held).rejects.toThrow('Argument `number` is missing');
    expect(await client.note.count({ where: { memberId, value: 1, fence: 0 } })).toBe(2);
  });

  test('what changes between the call and its `await` is not sent without its condition', async () => {
    const { client, team, ids, left, untouched } = await members();
    const nested = { update: { where: { id: ids[1] }, data: { value: 77 } } };
    const CHANGED: Record<string, (tx: FenceTx) => PromiseLike<unknown>> = {
      'a nested write in the data': (tx) => {
        const data: Record<string, unknown> = { name: 'x' };
        const called = tx.team.update({ where: { id: team.id }, data });
        data['members'] = nested;
        return called;
      },
      'the data': (tx) => {
        const args = { where: { id: team.id }, data: { name: 'x' } as object };
        const called = tx.team.update(args);
        args.data = { members: nested };
        return called;
      },
      'the condition, in front of a relation': (tx) => {
        const where: { id: number; team?: object } = { id: ids[1], team: { id: team.id } };
        const called = tx.member.update({ where, data: { value: 77 } });
        delete where.team;
        return called.notes();
      },
    };
    for (const [what, write] of Object.entries(CHANGED)) {
      await client.$withLock('changed', (tx) => write(tx)).catch(() => {});
      expect(await left(), what).toEqual(untouched);
    }
  });

  test('values of columns that are objects stay what they are', async () => {
    const client = world.client();
    const data = { name: name(), value: 1, data: { at: new Date(0), list: [{ deep: [1, null] }], toJSON: 'a field' } };
    const made = await client.$withLock('values', (tx) => tx.word.create({ data: data as never }));
    expect(made.data).toEqual({ at: '1970-01-01T00:00:00.000Z', list: [{ deep: [1, null] }], toJSON: 'a field' });
    const { DbNull } = Prisma;
    const same = { id: made.id, where: { equals: client.word.fields.set } };
    await client.$withLock('values', (tx) => tx.word.updateMany({ where: same, data: { data: DbNull, value: 2 } }));
    expect(await client.word.findUnique({ where: { id: made.id } })).toMatchObject({ data: null, value: 2 });
  });

  test('a getter that throws rejects the operation', async () => {
    const args = Object.defineProperty({ where: { id: 1 } }, 'data', {
      enumerable: true,
      get: () => {
        throw new Error('no data');
      },
    });
    const held = world.client().$withLock('getter', async (tx) => {
      let called: PromiseLike<unknown> | undefined;
      expect(() => {
        called = tx.word.update(args as never);
      }).not.toThrow();
      await called;
    });
    await expect(held).rejects.toMatchObject({ message: 'no data' });
  });
});

describeWithShop('an operation that was called', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('is a text like any promise, and is still to be awaited', async () => {
    const { id, key } = await shop.product(10);
    const write = (tx: LockTx<ShopClient>) => tx.stock.update({ where: { id }, data: { quantity: 1 } });
    await prisma.$withLock(key, async (tx) => {
      const called = write(tx);
      expect(`${called as unknown as string}`).toBe('[object PrismaPromise]');
      await called;
    });
    const forgotten = prisma.$withLock(key, (tx) => void (write(tx) as object).toString());
    await expect(forgotten).rejects.toMatchObject({ reason: 'not-awaited' });
  });
});

describeOfEachKind('what Prisma says of a write without a guard that it refuses', (of) => {
  const world = new FenceWorld(`fence_refused_${of}`, undefined, [], of);
  type Tx = Pick<FenceTx, 'word'>;
  const wrong = { nonsense: 1 } as never;

  const REFUSED: Record<string, (tx: Tx) => Promise<unknown>> = {
    create: async (tx) => await tx.word.create({ data: wrong }),
    createMany: async (tx) => await tx.word.createMany({ data: [wrong] }),
    updateMany: async (tx) => await tx.word.updateMany({ where: {}, data: wrong }),
    deleteMany: async (tx) => await tx.word.deleteMany({ where: wrong }),
    delete: async (tx) => await tx.word.delete({ where: wrong }),
  };
  const SEVERAL: Record<string, (tx: Tx) => Promise<unknown>> = {
    upsert: async (tx) => await tx.word.upsert({ where: { id: -1 }, update: {}, create: wrong }),
    'delete, with a relation': async (tx) =>
      await tx.word.delete({ where: { id: -1, connect: wrong }, include: { connect: true } }),
  };

  type Given = Record<string, unknown>;
  const WITHOUT_DATA: Record<string, (tx: Tx, given: Given) => PromiseLike<unknown>> = {
    create: (tx, { data }) => tx.word.create({ data } as never),
    createMany: (tx, { data }) => tx.word.createMany({ data } as never),
    'createMany, a row': (tx, { data }) => tx.word.createMany({ data: [data] } as never),
    update: (tx, given) => tx.word.update(given as never),
    'update, with a relation': (tx, { data }) => tx.word.update({ where: { id: -1, connect: {} }, data } as never),
    updateMany: (tx, given) => tx.word.updateMany(given as never),
    'the create of an upsert': (tx, { where, data }) => tx.word.upsert({ where, create: data, update: {} } as never),
    'the update of an upsert': (tx, { where, data }) =>
      tx.word.upsert({ where, create: { name: 'made', value: 1 }, update: data } as never),
    'an upsert with it beside': (tx, { where, data }) =>
      tx.word.upsert({ where, data, create: { name: 'made', value: 1 }, update: {} } as never),
  };

  test.each(Object.entries(WITHOUT_DATA))('what is no data is refused: %s', async (kind, write) => {
    const client = world.client();
    await client.word.deleteMany();
    const { id } = await client.word.create({ data: { name: name(), value: 1 } });
    const end = async (run: Promise<unknown>) => await run.catch((error: Error) => error.name);
    // One that is undefined, beside the rows of an upsert, is none.
    const isBeside = kind.endsWith('beside');
    for (const data of [null, ...(isBeside ? [] : [undefined]), 5, 'x', [], [[]], new Date()]) {
      const given = { where: { id }, data };
      const bare = await end(client.$transaction(async (tx) => await write(tx, given)));
      const locked = await end(client.$withLock('data', async (tx) => await write(tx, given)));
      // An empty list of rows is data.
      expect(bare).toEqual(Array.isArray(data) && kind === 'createMany' ? bare : 'PrismaClientValidationError');
      expect(locked, String(data)).toEqual(bare);
    }
    expect(await client.word.findMany({ select: { value: true, fence: true } })).toEqual([{ value: 1, fence: 0n }]);
  });

  /** What it says in front of the arguments: the operation, and the line that called it. */
  const said = async (run: Promise<unknown>): Promise<string> => {
    const error = (await run.catch((error: unknown) => error)) as Error;
    expect(error.constructor.name).toBe('PrismaClientValidationError');
    return /[\s\S]*? invocation[\s\S]*?(?=\{\n)/.exec(error.message)?.[0] ?? error.message;
  };

  test.each(Object.entries(REFUSED))('names the line of the caller, as without a lock: %s', async (_, write) => {
    const client = world.client();
    const locked = await said(client.$withLock('refused', write));
    const bare = await said(client.$transaction(write));
    expect(locked).toBe(bare);
    expect(locked).toContain('as-prisma.test.ts');
  });

  test.each(Object.entries(SEVERAL))('names no line of this package: %s', async (_, write) => {
    expect(await said(world.client().$withLock('refused', write))).not.toMatch(/src|dist|node_modules/);
  });
});

describeOfEachKind('a row that is named by a compound key, without a guard', (of) => {
  const world = new FenceWorld(`fence_compound_keys_${of}`, undefined, [], of);
  let members = 0;

  /** A member with three notes, whose values are their numbers. */
  async function notes() {
    const client = world.client();
    const { id } = await client.member.create({ data: { name: `member ${++members}`, value: 1 } });
    const rows = [1, 2, 3].map((number) => ({ memberId: id, number, name: `n${number} of ${id}`, value: number }));
    await client.note.createMany({ data: rows });
    const values = async () => {
      const found = await client.note.findMany({ where: { memberId: id }, orderBy: { number: 'asc' } });
      return found.map(({ number, value, fence }) => `${number}=${value}${fence > 0n ? '*' : ''}`);
    };
    return { client, id, values };
  }

  /** As without `strictUndefinedChecks`, which most clients do not have. */
  function lenient(client: object): void {
    (client as { _originalClient: { _previewFeatures: string[] } })._originalClient._previewFeatures = [];
  }

  type Where = Prisma.NoteWhereUniqueInput;
  const WRITES: Record<string, (tx: FenceTx, where: Where, memberId: number) => Promise<unknown>> = {
    'delete, with an include': (tx, where) => tx.note.delete({ where, include: { member: true } }),
    'update, with a relation': (tx, where, id) =>
      tx.note.update({ where: { ...where, member: { id } }, data: { value: 99 } }),
    upsert: (tx, where, memberId) =>
      tx.note.upsert({
        where,
        update: { value: 99 },
        create: { memberId, number: 9, name: `made ${memberId}`, value: 9 },
      }),
    'update of columns': (tx, where) => tx.note.update({ where, data: { value: 99 } }),
  };

  test.each(Object.entries(WRITES))(
    'is the one that is written, whatever else is asked of its parts: %s',
    async (kind, write) => {
      for (const more of [{ number: { gt: 0 } }, { number: { lte: 3 }, memberId: { gt: 0 } }, { AND: { number: 3 } }]) {
        const { client, id, values } = await notes();
        const where = { memberId_number: { memberId: id, number: 3 }, ...more };
        await client.$withLock(`member:${id}`, (tx) => write(tx, where, id));
        expect(await values()).toEqual(kind.startsWith('delete') ? ['1=1', '2=2'] : ['1=1', '2=2', '3=99*']);
      }
    },
  );

  test.each(Object.entries(WRITES))('is no other one, where that meets what else is asked: %s', async (kind, write) => {
    const others = (id: number): Array<Partial<Where>> => [
      { number: 2 },
      { title: { name: `n2 of ${id}`, number: 2 } },
    ];
    for (const at of [0, 1]) {
      const { client, id, values } = await notes();
      const where = { memberId_number: { memberId: id, number: 1 }, ...others(id)[at] };
      const written = client.$withLock(`member:${id}`, (tx) => write(tx, where, id));
      if (kind === 'upsert') await written;
      else await expect(written).rejects.toMatchObject({ code: 'P2025' });
      expect(await values()).toEqual(['1=1', '2=2', '3=3', ...(kind === 'upsert' ? ['9=9*'] : [])]);
    }
  });

  test.each(Object.entries(WRITES))('may have another key beside it that is left out: %s', async (kind, write) => {
    const { client, id, values } = await notes();
    lenient(client);
    const where = { memberId_number: { memberId: id, number: 3 }, title: undefined } as unknown as Where;
    await client.$withLock(`member:${id}`, (tx) => write(tx, where, id));
    expect(await values()).toEqual(kind.startsWith('delete') ? ['1=1', '2=2'] : ['1=1', '2=2', '3=99*']);
  });

  // As they come out of the JSON of a request.
  const UNNAMED: ReadonlyArray<(id: number) => unknown> = [
    (id) => ({ memberId_number: { memberId: id, number: { gt: 0 } } }),
    (id) => ({ memberId_number: { memberId: id, number: undefined } }),
    (id) => ({ memberId_number: { memberId: id, number: null } }),
    (id) => ({ memberId: { equals: id }, number: { gt: 1 } }),
    (id) => ({ memberId_number: { memberId: id, number: 3 }, title: { name: { contains: 'n' }, number: 3 } }),
    () => ({ memberId_number: undefined }),
    () => ({ memberId_number: {} }),
    () => ({}),
    () => undefined,
  ];

  test.each(
    Object.entries(WRITES).flatMap(([kind, write]) => [
      [kind, 'strict', write] as const,
      [kind, 'lenient', write] as const,
    ]),
  )('is none, where the key is none: %s, by a %s client', async (_, mode, write) => {
    const { client, id, values } = await notes();
    if (mode === 'lenient') lenient(client);
    for (const where of UNNAMED) {
      const caught = client.$withLock(`member:${id}`, async (tx) => {
        await expect(write(tx, where(id) as Where, id)).rejects.toMatchObject({ name: 'PrismaClientValidationError' });
      });
      await caught;
      expect(await values(), JSON.stringify(where(id))).toEqual(['1=1', '2=2', '3=3']);
    }
  });
});

describeWithShop('typed SQL that writes, called on the client inside the function of a lock', () => {
  const world = new FenceWorld('fence_typed_sql');
  // As `prisma generate --sql` makes them.
  const set = makeTypedQueryFactory('UPDATE people."Word" SET value = $1 WHERE id = $2 RETURNING value') as (
    ...values: [number, number]
  ) => Parameters<FenceTx['$queryRawTyped']>[0];

  test('is refused, and on `tx` it is part of the transaction', async () => {
    const client = world.client();
    const { id } = await client.word.create({ data: { name: 'typed', value: 1 } });
    const outside = client.$withLock('typed', () => client.$queryRawTyped(set(77, id)));
    await expect(outside).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    const rolledBack = client.$withLock('typed', async (tx) => {
      await tx.$queryRawTyped(set(78, id));
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(await client.word.findUnique({ where: { id } })).toMatchObject({ value: 1 });
    await client.$withLock('typed', (tx) => tx.$queryRawTyped(set(79, id)));
    expect(await client.word.findUnique({ where: { id } })).toMatchObject({ value: 79 });
  });
});
