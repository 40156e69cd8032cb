import { PrismaPg } from '@prisma/adapter-pg';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { processWide } from '../../../src/base/process-wide.js';
import { InvalidOptionError, type LockTx } from '../../../src/index.js';
import type { Prisma, PrismaClient } from '../../generated/prisma/client.js';
import { describeOfEachKind, ofKind } from '../../support/client-kinds.js';
import { FenceWorld, FRESHER } from '../../support/fence-world.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../../support/shop.js';

interface Seen {
  readonly model: string | undefined;
  readonly operation: string;
}

describeWithShop('an extension of the client, and a model without a guard', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** Extended before and after `fencedLock`. */
  const SIDES = ['before', 'after'] as const;
  function extended(side: (typeof SIDES)[number], extension: (client: object) => object): typeof prisma {
    const apply = (client: object): object => {
      const made = extension(client);
      return '$extends' in made ? made : (client as PrismaClient).$extends(made as never);
    };
    if (side === 'after') return apply(shop.client().prisma) as typeof prisma;
    return shop.extend(apply(shop.unextended(new PrismaPg({ connectionString: inject('postgres').app }))));
  }

  test.each(SIDES)('applied %s: changes the values of an upsert once', async (side) => {
    const { id, key } = await shop.product(10);
    const twice = (row: { quantity: number }) => ({ ...row, quantity: row.quantity * 2 });
    const client = extended(side, () => ({
      query: {
        stock: {
          async $allOperations({ args, query }: { args: never; query: (args: unknown) => Promise<unknown> }) {
            const { data, update, create, ...rest } = args as Record<string, { quantity: number }>;
            return await query({
              ...rest,
              ...(data && { data: twice(data) }),
              ...(update && { update: twice(update) }),
              ...(create && { create: twice(create) }),
            });
          },
        },
      },
    }));
    const upsert = (where: Prisma.StockWhereUniqueInput) =>
      client.$withLock(key, (tx) =>
        tx.stock.upsert({ where, update: { quantity: 7 }, create: { product: `new ${key}`, quantity: 7 } }),
      );
    expect(await upsert({ id })).toMatchObject({ quantity: 14 });
    expect(await upsert({ product: `new ${key}` })).toMatchObject({ quantity: 14 });
  });

  test.each(SIDES)('applied %s: hides no stale row', async (side) => {
    const { id, key } = await shop.product(10);
    const client = extended(side, () => ({
      query: {
        stock: {
          findFirst: ({ args, query }: { args: { where?: object }; query: (args: unknown) => Promise<unknown> }) =>
            query({ ...args, where: { AND: [args.where ?? {}, { quantity: { gt: 100 } }] } }),
        },
      },
    }));
    await shop.admin.query('UPDATE "Stock" SET fence = $2 WHERE id = $1', [id, FRESHER]);
    for (const write of ['updateMany', 'update', 'upsert'] as const) {
      const data = { quantity: 9 };
      const args = write === 'upsert' ? { update: data, create: { product: key, ...data } } : { data };
      const stale = client.$withLock(key, (tx) =>
        (tx.stock[write] as (args: object) => Promise<unknown>)({ where: { id }, ...args }),
      );
      await expect(stale, write).rejects.toMatchObject({ code: 'STALE_TOKEN', model: 'Stock' });
    }
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test.each(SIDES)('applied %s: sees the operations of its caller and no other', async (side) => {
    const { id, key } = await shop.product(10);
    const seen: string[] = [];
    const client = extended(side, () => ({
      query: {
        $allOperations({ model, operation, args, query }: Seen & { args: unknown; query: (args: unknown) => unknown }) {
          if (model !== undefined) seen.push(`${model}.${operation}`);
          return query(args);
        },
      },
    }));
    await client.$withLock(key, async (tx) => {
      await tx.stock.upsert({ where: { id }, update: { quantity: 9 }, create: { product: key, quantity: 9 } });
      await tx.stock.update({ where: { id, orders: { none: {} } }, data: { quantity: 8 } });
      await tx.stock.updateMany({ where: { id }, data: { quantity: 7 } });
    });
    expect(seen).toEqual(['Stock.upsert', 'Stock.update', 'Stock.updateMany']);
    expect((await shop.row(id))?.quantity).toBe(7);
  });

  /** Recipes for row-level security do so; `how`: how they set the variable of the session. */
  const ownTransactions = (how: '$executeRaw' | '$queryRaw') => (base: object) => ({
    query: {
      $allModels: {
        async $allOperations({ args, query }: { args: unknown; query: (args: unknown) => Promise<unknown> }) {
          const client = base as PrismaClient;
          const set = client[how]`SELECT set_config('app.tenant', '1', true)`;
          const [, result] = await client.$transaction([set, query(args) as Prisma.PrismaPromise<unknown>]);
          return result;
        },
      },
    },
  });

  describe.each(SIDES)('applied %s, that sends each operation in a transaction of its own', (side) => {
    test.each(['$executeRaw', '$queryRaw'] as const)('by %s, is noticed', async (how) => {
      const client = extended(side, ownTransactions(how));
      const { id, key } = await shop.product(10);
      const write: Record<string, (tx: LockTx<ShopClient>) => Promise<unknown>> = {
        fenced: (tx) => tx.stock.update({ where: { id }, data: { quantity: 1 } }),
        related: (tx) => tx.order.create({ data: { stockId: id, buyer: key, quantity: 1 } }),
        'a read, which would miss what the function wrote': (tx) => tx.stock.findUnique({ where: { id } }),
        'of no concern': (tx) =>
          tx.ledger.create({ data: { key, token: 1n, before: 1, after: 1, worker: 'none', once: null } }),
      };
      for (const each of Object.values(write)) {
        const held = client.$withLock(key, async (tx) => {
          await each(tx);
          throw new Error('roll back');
        });
        await expect(held).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION', key });
      }
      expect((await shop.row(id))?.quantity).toBe(10);
      expect(await prisma.order.count({ where: { stockId: id } })).toBe(0);
      expect(await prisma.ledger.count({ where: { key } })).toBe(0);
      // Outside of locks it works as before.
      expect(await client.stock.update({ where: { id }, data: { quantity: 1 } })).toMatchObject({ quantity: 1 });
      expect(await client.stock.findUnique({ where: { id } })).toMatchObject({ quantity: 1 });
    });
  });
});

describeOfEachKind('writes of one `Promise.all`, on models without a guard', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);

  test('are executed in the order of the calls, however many statements each takes, among raw SQL and other models', async () => {
    const { id, key } = await shop.product(10);
    const raw = (tx: LockTx<ShopClient>) =>
      tx.$executeRaw`UPDATE "Stock" SET quantity = quantity * 10 WHERE id = ${id}`;
    const noted = (tx: LockTx<ShopClient>) =>
      tx.$queryRaw`INSERT INTO "Ledger" (key, token, before, after, worker)
        SELECT ${key}, 1, 0, quantity, (SELECT count(*)::text FROM "Ledger" WHERE key = ${key}) FROM "Stock" WHERE id = ${id}`;
    await prisma.$withLock(key, (tx) =>
      Promise.all([
        tx.stock.upsert({ where: { id }, update: { quantity: 1 }, create: { product: key, quantity: 1 } }),
        raw(tx),
        tx.ledger.create({ data: { key, token: 1n, before: 0, after: 0, worker: 'first' } }),
        noted(tx),
        tx.stock.update({ where: { id }, data: { quantity: { increment: 5 } } }),
        raw(tx),
      ]),
    );
    expect((await shop.row(id))?.quantity).toBe(150);
    const entries = await prisma.ledger.findMany({ where: { key }, orderBy: { id: 'asc' } });
    expect(entries).toMatchObject([{ worker: 'first' }, { worker: '1', after: 10 }]);
  });
});

describeOfEachKind('a write without a guard that is awaited twice', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);
  const more = { quantity: { increment: 1 } };

  const TWICE: Record<string, (tx: LockTx<ShopClient>, id: number) => PromiseLike<unknown>> = {
    update: (tx, id) => tx.stock.update({ where: { id }, data: more }),
    'relation of an upsert': (tx, id) =>
      tx.stock
        .upsert({ where: { id }, update: more, create: { product: `another one than ${id}`, quantity: 0 } })
        .orders(),
  };

  test.each(Object.entries(TWICE))('is executed once, as by Prisma: %s', async (_, write) => {
    const { id, key } = await shop.product(10);
    const [first, second, together] = await prisma.$withLock(key, async (tx) => {
      const operation = write(tx, id);
      return [await operation, await operation, await Promise.all([operation, operation])];
    });
    expect(second).toEqual(first);
    expect(together).toEqual([first, first]);
    expect((await shop.row(id))?.quantity).toBe(11);
  });
});

describeOfEachKind('a relation of the row that a write gives, without a guard', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);
  type Tx = LockTx<ShopClient>;

  const ROW: Record<string, (tx: Tx, id: number, key: string) => { orders(args?: object): Promise<unknown> }> = {
    update: (tx, id) => tx.stock.update({ where: { id }, data: { quantity: 1 } }),
    'update, with a relation in its condition': (tx, id) =>
      tx.stock.update({ where: { id, orders: { some: {} } }, data: { quantity: 1 } }),
    upsert: (tx, id, key) =>
      tx.stock.upsert({ where: { id }, update: { quantity: 1 }, create: { product: key, quantity: 1 } }),
  };

  test.each(Object.entries(ROW))('is what it gives, with its own arguments: %s', async (_, write) => {
    const { id, key } = await shop.product(10);
    await prisma.order.createMany({ data: [3, 4].map((quantity) => ({ stockId: id, buyer: key, quantity })) });
    const [all, some] = await prisma.$withLock(key, async (tx) => [
      await write(tx, id, key).orders(),
      await write(tx, id, key).orders({ where: { quantity: 4 }, select: { quantity: true } }),
    ]);
    expect(all).toMatchObject([
      { stockId: id, quantity: 3 },
      { stockId: id, quantity: 4 },
    ]);
    expect(some).toEqual([{ quantity: 4 }]);
    expect((await shop.row(id))?.quantity).toBe(1);
  });
});

describeWithShop('operations of one `Promise.all`, where all tables have a guard', () => {
  const world = new FenceWorld('fence_first_call', 'allow');

  test('are executed in the order of the calls, also in the first call of a client', async () => {
    for (const round of ['first', 'second']) {
      const client = world.client();
      for (const call of ['first', 'next']) {
        const name = `${round} client, ${call} call`;
        const [, found] = await client.$withLock(name, (tx) =>
          Promise.all([
            tx.word.create({ data: { name, value: 1 } }),
            tx.word.findUnique({ where: { name } }),
            tx.word.update({ where: { name }, data: { value: 2 } }),
            tx.$executeRaw`UPDATE people."Word" SET value = value * 10 WHERE name = ${name}`,
          ]),
        );
        expect(found, name).toMatchObject({ value: 1 });
        expect(await client.word.findUnique({ where: { name } }), name).toMatchObject({ value: 20 });
      }
    }
  });
});

describeOfEachKind('transactions of one client on a model without a guard, at work at the same time', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);

  test('each writes with its own token, however often they write beside each other', async () => {
    const products = await Promise.all(Array.from({ length: 6 }, () => shop.product(10)));
    const tokens = new Map<number, bigint>();
    let arrived = 0;
    const allAdmitted = gate();
    await Promise.all(
      products.map(({ id, key }, at) =>
        prisma.$withLock(key, async (tx, { token }) => {
          tokens.set(id, token);
          if (++arrived === products.length) allAdmitted.open();
          await allAdmitted.opened;
          for (let turn = at; turn < products.length; turn++) {
            await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
          }
        }),
      ),
    );
    for (const [at, { id }] of products.entries()) {
      expect(await shop.row(id)).toEqual({ quantity: 10 - (products.length - at), fence: tokens.get(id) });
    }
  });
});

describeWithShop('a version of Prisma that does not tell the id of a transaction', () => {
  const shop = new Shop();
  const IDS = new Set<unknown>([
    Symbol.for('prisma.client.transaction.id'),
    Symbol.for('prisma.client.transaction.scope_context'),
  ]);

  // That the id is unknown is remembered until the process ends, and the tests of other files run in it, too.
  afterAll(() => void processWide('transactions', () => new Set<unknown>()).delete(undefined));

  function withoutIds(options: { models?: string[] }) {
    const { plain } = shop.client();
    const { $transaction: original } = plain as unknown as { $transaction: (...given: unknown[]) => unknown };
    const hidden = (tx: object) =>
      new Proxy(tx, { get: (target, name) => (IDS.has(name) ? undefined : Reflect.get(target, name)) });
    const extended = plain.$extends({
      client: {
        $transaction(work: (tx: object) => unknown, given: unknown) {
          return original.call(this, (tx: object) => work(hidden(tx)), given);
        },
      },
    });
    return shop.extend(extended, options);
  }

  test('is refused where a fenced model has no guard: a write would not find the fence of its transaction', async () => {
    const { id, key } = await shop.product(10);
    const held = withoutIds({}).$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    await expect(held).rejects.toBeInstanceOf(InvalidOptionError);
    await expect(held).rejects.toThrow('does not tell the id of a transaction');
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
