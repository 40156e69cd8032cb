import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { fakeLocks } from '../../../../src/addons/testing/index.js';
import type { LockTx } from '../../../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../../../support/shop.js';
import { mocks, outcomeOf } from './both.js';

const set = (id: number, quantity = 0) => ({ where: { id }, data: { quantity } });

interface Row {
  readonly id: number;
  readonly key: string;
}
type Snippet = (prisma: ShopClient, row: Row) => Promise<unknown>;

describeWithShop('the same function on the fake and on real servers: a call on the client, not on tx,', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const inside = (call: (prisma: ShopClient, id: number) => unknown): Snippet => {
    return async (prisma, { id, key }) => await prisma.$withLock(key, async () => void (await call(prisma, id)));
  };

  const REFUSED: Record<string, Snippet> = {
    update: inside((prisma, id) => prisma.stock.update(set(id))),
    updateMany: inside((prisma, id) => prisma.stock.updateMany(set(id))),
    createMany: inside((prisma) => prisma.stock.createMany({ data: [{ product: 'x', quantity: 1 }] })),
    delete: inside((prisma, id) => prisma.stock.delete({ where: { id } })),
    upsert: inside((prisma, id) =>
      prisma.stock.upsert({ where: { id }, update: { quantity: 0 }, create: { product: 'x', quantity: 0 } }),
    ),
    'create of another model': inside((prisma, id) =>
      prisma.order.create({ data: { buyer: 'x', quantity: 1, stockId: id } }),
    ),
    $executeRaw: inside((prisma, id) => prisma.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`),
    $executeRawUnsafe: inside((prisma) => prisma.$executeRawUnsafe('DELETE FROM "Stock" WHERE false')),
    '$queryRaw that writes': inside(
      (prisma, id) => prisma.$queryRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id} RETURNING id`,
    ),
    '$queryRawUnsafe that writes': inside((prisma) =>
      prisma.$queryRawUnsafe('/* c */ DELETE FROM "Stock" WHERE false RETURNING id'),
    ),
    'a batch': inside((prisma, id) => prisma.$transaction([prisma.stock.update(set(id))])),
    'a batch of two writes': inside((prisma, id) =>
      prisma.$transaction([prisma.stock.update(set(id)), prisma.stock.updateMany(set(id))]),
    ),
    'a transaction of its own': inside((prisma, id) => prisma.$transaction((other) => other.stock.update(set(id)))),
    'a write in the transaction of a handle': async (prisma, { id, key }) => {
      await using handle = await prisma.$lock(key);
      await handle.$transaction(async () => void (await prisma.stock.update(set(id))));
    },
    'a write in a joined call': async (prisma, { id, key }) =>
      await prisma.$withLock(key, () => prisma.$withLock(key, () => prisma.stock.update(set(id)))),
    'a write of a model that was read before': async (prisma, { id, key }) => {
      const { stock } = prisma;
      await prisma.$withLock(key, () => stock.update(set(id)));
    },
  };

  test.each(Object.entries(REFUSED))('is refused: %s', async (_, snippet) => {
    const row = await shop.product(10);
    const real = await outcomeOf(snippet(prisma, row));
    expect(real).toMatchObject({ type: 'InsideTransactionError', code: 'INSIDE_TRANSACTION' });
    const client = mocks();
    expect(await outcomeOf(snippet(fakeLocks<ShopClient>(client).prisma, row))).toEqual(real);
    const { stock, order, $executeRaw, $executeRawUnsafe, $queryRaw, $queryRawUnsafe } = client;
    for (const mock of [...Object.values(stock), ...Object.values(order)]) expect(mock).not.toHaveBeenCalled();
    for (const mock of [$executeRaw, $executeRawUnsafe, $queryRaw, $queryRawUnsafe]) {
      expect(mock).not.toHaveBeenCalled();
    }
    expect((await shop.row(row.id))?.quantity).toBe(10);
    client.$transaction.mockImplementation(async (of) => (Array.isArray(of) ? [] : await of(client)));
    expect(await outcomeOf(snippet(fakeLocks<ShopClient>(client).prisma, row))).toEqual(real);
  });

  const PASSING: Record<string, Snippet> = {
    'a read': inside((prisma) => prisma.stock.findMany({ take: 1 })),
    'a batch of reads': inside((prisma) => prisma.$transaction([prisma.stock.count(), prisma.order.count()])),
    'raw SQL that reads': inside((prisma) => prisma.$queryRaw`SELECT 1`),
    'raw SQL of a string that reads': inside((prisma) => prisma.$queryRawUnsafe('SELECT 1')),
    'a write whose refusal is caught': inside((prisma, id) => prisma.stock.update(set(id)).catch(() => {})),
    // Not sent, on both.
    'a write that is not awaited': inside((prisma, id) => void prisma.stock.update(set(id))),
    'a write behind the call': async (prisma, { id, key }) => {
      await prisma.$withLock(key, () => {});
      await prisma.stock.update(set(id));
    },
    'a write that is made inside and awaited behind the call': async (prisma, { id, key }) => {
      const { made } = await prisma.$withLock(key, () => ({ made: prisma.stock.update(set(id)) }));
      await made;
    },
    'a write between two transactions of a handle': async (prisma, { id, key }) => {
      await using handle = await prisma.$lock(key);
      await handle.$transaction(() => {});
      await prisma.stock.update(set(id));
      await handle.$transaction(() => {});
    },
    'a write in a hook': async (prisma, { id, key }) =>
      await prisma.$withLock(key, (_, lock) => lock.afterCommit(() => prisma.stock.update(set(id)))),
    'a write beside two calls that hold their keys': async (prisma, { id, key }) => {
      const [one, other, written] = [gate(), gate(), gate()];
      const holding = (of: string, inside: typeof one) =>
        prisma.$withLock(of, async () => {
          inside.open();
          await written.opened;
        });
      const writing = async () => {
        await Promise.all([one.opened, other.opened]);
        await prisma.stock.update(set(id));
        written.open();
      };
      await Promise.all([holding(key, one), writing(), holding(`${key}:other`, other)]);
    },
  };

  test.each(Object.entries(PASSING))('is not refused: %s', async (_, snippet) => {
    const row = await shop.product(10);
    expect(await outcomeOf(snippet(prisma, row))).toBe('resolved');
    const client = mocks();
    expect(await outcomeOf(snippet(fakeLocks<ShopClient>(client).prisma, row))).toBe('resolved');
    const { quantity } = (await shop.row(row.id)) ?? {};
    expect(client.stock.update).toHaveBeenCalledTimes(quantity === 0 ? 1 : 0);
  });
});

describeWithShop('the same function on the fake and on real servers: a lock inside a plain $transaction', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  /** The client of the transaction, whose type does not have the locks. */
  const locksOf = (tx: unknown) => tx as ShopClient;

  const REFUSED: Record<string, Snippet> = {
    $withLock: (prisma, { key }) => prisma.$transaction(async () => await prisma.$withLock(key, () => 1)),
    'a function that is not async': (prisma, { key }) => prisma.$transaction(() => prisma.$withLock(key, () => 1)),
    'behind an operation': (prisma, { key }) =>
      prisma.$transaction(async (tx) => {
        await tx.stock.count();
        await prisma.$withLock(key, () => 1);
      }),
    'in a helper': (prisma, { key }) => {
      const helper = async () => await prisma.$withLock(key, () => 1);
      return prisma.$transaction(async () => await Promise.all([helper()]));
    },
    $tryWithLock: (prisma, { key }) => prisma.$transaction(async () => await prisma.$tryWithLock(key, () => 1)),
    $oncePer: (prisma, { key }) => prisma.$transaction(async () => await prisma.$oncePer(key, 60_000, () => 1)),
    $lock: (prisma, { key }) => prisma.$transaction(async () => await prisma.$lock(key)),
    $resumeLock: async (prisma, { key }) => {
      await using handle = await prisma.$lock(key);
      await prisma.$transaction(async () => await prisma.$resumeLock(handle.toJSON()));
    },
    '$withLock of its client': (prisma, { key }) => prisma.$transaction((tx) => locksOf(tx).$withLock(key, () => 1)),
    '$tryWithLock of its client': (prisma, { key }) =>
      prisma.$transaction((tx) => locksOf(tx).$tryWithLock(key, () => 1)),
    '$oncePer of its client': (prisma, { key }) =>
      prisma.$transaction((tx) => locksOf(tx).$oncePer(key, 60_000, () => 1)),
    '$lock of its client': (prisma, { key }) => prisma.$transaction(async (tx) => void (await locksOf(tx).$lock(key))),
    '$resumeLock of its client': async (prisma, { key }) => {
      await using handle = await prisma.$lock(key);
      await prisma.$transaction(async (tx) => void (await locksOf(tx).$resumeLock(handle.toJSON())));
    },
    'of the client of a transaction inside a lock': (prisma, { key }) =>
      prisma.$withLock(key, () => prisma.$transaction((tx) => locksOf(tx).$withLock(key, () => 1))),
  };

  test.each(Object.entries(REFUSED))('is refused: %s', async (_, snippet) => {
    const row = { id: 1, key: `inside:${randomUUID()}` };
    const real = await outcomeOf(snippet(prisma, row));
    expect(real).toMatchObject({ type: 'InsideTransactionError', key: row.key });
    const locks = fakeLocks<ShopClient>(mocks());
    expect(await outcomeOf(snippet(locks.prisma, row))).toEqual(real);
    expect(locks.calls.map(({ outcome }) => outcome)).not.toContain('committed');
  });

  const PASSING: Record<string, Snippet> = {
    'behind it': async (prisma, { key }) => {
      await prisma.$transaction(async (tx) => await tx.stock.count());
      await prisma.$withLock(key, () => 1);
    },
    'with nested: allow': (prisma, { key }) =>
      prisma.$transaction(async () => await prisma.$withLock(key, () => 1, { nested: 'allow' })),
    'that joins the lock around it': (prisma, { key }) =>
      prisma.$withLock(key, () => prisma.$transaction(async () => await prisma.$withLock(key, () => 1))),
    'of a caller that is not in it': async (prisma, { key }) => {
      const [inside, done] = [gate(), gate()];
      const locking = async () => {
        await inside.opened;
        await prisma.$withLock(key, () => 1);
        done.open();
      };
      const transaction = prisma.$transaction(async () => {
        inside.open();
        await done.opened;
      });
      await Promise.all([locking(), transaction]);
    },
  };

  test.each(Object.entries(PASSING))('is not refused: %s', async (_, snippet) => {
    const row = { id: 1, key: `inside:${randomUUID()}` };
    expect(await outcomeOf(snippet(prisma, row))).toBe('resolved');
    expect(await outcomeOf(snippet(fakeLocks<ShopClient>(mocks()).prisma, row))).toBe('resolved');
  });
});

describeWithShop('the same function on the fake and on real servers: an operation on tx', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  type Tx = LockTx<ShopClient>;
  type Work = (tx: Tx, id: number) => unknown;

  /** The calls of Prisma that a mock has. */
  const sent = (client: ReturnType<typeof mocks>) =>
    [client.stock, client.order]
      .flatMap((model) => Object.values(model))
      .reduce((sum, m) => sum + m.mock.calls.length, 0) +
    client.$executeRaw.mock.calls.length +
    client.$queryRaw.mock.calls.length;

  const FORGOTTEN: Record<string, Work> = {
    'a write': (tx, id) => void tx.stock.update(set(id)),
    'a write whose mock returns no promise': (tx, id) => void tx.stock.updateMany(set(id)),
    'raw SQL': (tx, id) => void tx.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
    'raw SQL that may only read': (tx) => void tx.$queryRaw`SELECT 1`,
    'a relation of a write': (tx, id) =>
      void tx.order.create({ data: { buyer: 'x', quantity: 1, stockId: id } }).stock(),
    'a write in an object': (tx, id) => ({ made: tx.stock.update(set(id)) }),
  };

  test.each(Object.entries(FORGOTTEN))('that is not awaited is not sent, and dooms: %s', async (_, forget) => {
    const { id, key } = await shop.product(10);
    const calls = (on: ShopClient): Array<() => Promise<unknown>> => [
      () => on.$withLock(key, async (tx) => forget(tx, id)),
      () => on.$withLock(key, (tx) => forget(tx, id)),
      () => on.$withLock(key, () => on.$withLock(key, (tx) => forget(tx, id))),
      () => on.$oncePer(key, 60_000, (tx) => forget(tx, id)),
      async () => {
        await using handle = await on.$lock(key);
        await handle.$transaction((tx) => forget(tx, id));
      },
    ];
    const client = mocks();
    const locks = fakeLocks<ShopClient>(client);
    const fakes = calls(locks.prisma);
    for (const [at, call] of calls(prisma).entries()) {
      const real = await outcomeOf(call());
      expect(real).toMatchObject({
        type: 'TransactionAbortedError',
        message: expect.stringContaining('never awaited'),
      });
      expect(await outcomeOf(fakes[at]?.() as Promise<unknown>)).toEqual(real);
    }
    expect(sent(client)).toBe(0);
    expect(locks.calls.at(-1)?.outcome).toBe('rolled back');
  });

  const forget = (helper: Promise<unknown>) => void helper.catch(() => {});
  const twice = async (tx: Tx, id: number) => {
    await tx.stock.update(set(id, 1));
    await tx.stock.update(set(id, 2));
  };
  const IN_FLIGHT: Record<string, Work> = {
    'of a helper': (tx, id) => forget(twice(tx, id)),
    'of a helper that has begun its second step': async (tx, id) => {
      forget(twice(tx, id));
      await tx.stock.count();
    },
    'of a helper that is between its two steps': async (tx, id) => {
      const between = gate();
      const helper = async () => {
        await tx.stock.update(set(id, 1));
        between.open();
        await undefined;
        await tx.stock.update(set(id, 2));
      };
      forget(helper());
      await between.opened;
    },
    'of a helper that awaits a lot between its two steps': async (tx, id) => {
      const between = gate();
      const helper = async () => {
        await tx.stock.update(set(id, 1));
        between.open();
        for (let passed = 0; passed < 400; passed++) await undefined;
        await tx.stock.update(set(id, 2));
      };
      forget(helper());
      await between.opened;
    },
    'that only reads': (tx) => forget(tx.stock.findUnique({ where: { id: 1 } }).then(() => {})),
    'of raw SQL': (tx) => forget(tx.$queryRaw`SELECT 1`.then(() => {})),
    'that has lost a race': (tx, id) => Promise.race([tx.stock.update(set(id)), 'first']),
  };

  test.each(Object.entries(IN_FLIGHT))('that is in flight at the end dooms: %s', async (_, work) => {
    const { id, key } = await shop.product(10);
    const real = await outcomeOf(prisma.$withLock(key, (tx) => work(tx, id)));
    expect(real).toMatchObject({ type: 'TransactionAbortedError', message: expect.stringContaining('in flight') });
    const { prisma: fake } = fakeLocks<ShopClient>(mocks());
    expect(await outcomeOf(fake.$withLock(key, (tx) => work(tx, id)))).toEqual(real);
  });

  const later = <T>(operation: PromiseLike<T>): Promise<T> =>
    new Promise((...settle) => void operation.then(...settle));
  /** How many calls each of them sends. */
  const HEALTHY: Record<string, readonly [number, Work]> = {
    'is returned': [1, (tx, id) => tx.stock.update(set(id))],
    'is returned from an async function': [1, async (tx, id) => tx.stock.update(set(id))],
    'is one of Promise.all': [2, (tx, id) => Promise.all([tx.stock.update(set(id)), tx.stock.count()])],
    'is given to a helper': [1, (tx, id) => later(tx.stock.update(set(id)))],
    'is awaited twice': [
      1,
      async (tx, id) => {
        const made = tx.stock.update(set(id));
        expect(await made).toBe(await made);
      },
    ],
    'is made early and awaited late': [
      2,
      async (tx, id) => {
        const made = tx.stock.update(set(id));
        await tx.stock.findMany({ take: 1 });
        await made;
      },
    ],
    'has a catch and a finally': [
      1,
      (tx, id) =>
        tx.stock
          .update(set(id))
          .catch(() => {})
          .finally(() => {}),
    ],
    'is raw': [1, (tx) => tx.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE false`],
    'goes on to a relation': [
      1,
      async (tx, id) => {
        expect(await tx.order.create({ data: { buyer: 'x', quantity: 1, stockId: id } }).stock()).toHaveProperty('id');
      },
    ],
    'stands beside a read that is dropped': [
      1,
      async (tx, id) => {
        void tx.stock.findMany();
        await tx.stock.update(set(id));
      },
    ],
    'has a mock that returns no promise': [
      2,
      async (tx, id) => [await tx.stock.updateMany(set(id)), await tx.stock.count()],
    ],
  };

  test.each(Object.entries(HEALTHY))('passes, and is sent once: one that %s', async (_, [count, work]) => {
    const { id, key } = await shop.product(10);
    expect(await outcomeOf(prisma.$withLock(key, (tx) => work(tx, id)))).toBe('resolved');
    const client = mocks();
    const { prisma: fake } = fakeLocks<ShopClient>(client);
    expect(await outcomeOf(fake.$withLock(key, (tx) => work(tx, id)))).toBe('resolved');
    expect(sent(client)).toBe(count);
  });

  test('that is sent when the call has ended is refused', async () => {
    const { id, key } = await shop.product(10);
    const client = mocks();
    const ends = async (on: ShopClient) => {
      // A read, which does not doom.
      const { made } = await on.$withLock(key, (tx) => ({ made: tx.stock.findUnique({ where: { id } }) }));
      return await outcomeOf(made);
    };
    const real = await ends(prisma);
    expect(real).toMatchObject({ code: 'CLOSED' });
    expect(await ends(fakeLocks<ShopClient>(client).prisma)).toEqual(real);
    expect(sent(client)).toBe(0);
  });
});

describeWithShop('the same function on the fake and on real servers', () => {
  const { prisma } = new Shop().client();

  test('whose work does not end in time rejects with the same error', async () => {
    const key = `stock:${randomUUID()}`;
    const never = (on: ShopClient) => on.$withLock(key, () => new Promise(() => {}), { timeout: 100 });
    const real = await outcomeOf(never(prisma));
    expect(real).toMatchObject({ code: 'TRANSACTION_ABORTED', message: expect.stringContaining('100 ms') });
    expect(await outcomeOf(never(fakeLocks<ShopClient>(mocks()).prisma))).toEqual(real);
  });
});
