import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { ClosedError, InsideTransactionError, type LockTx } from '../../src/index.js';
import { FencedTx, NOT_ON_TX, Operations } from '../../src/prisma/tx.js';
import { Prisma } from '../generated/prisma/client.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

const NOTHING = { models: new Map<string, string>(), writes: new Set<string>() };

/** As much of a client as a proxy over it has to do with. */
class Client {
  static readonly note = Symbol('note');
  readonly stock = { count: () => Promise.resolve(3) };
  said = '';
  get own(): unknown {
    return this;
  }
  me(): unknown {
    return this;
  }
  $extends(): string {
    return 'extended';
  }
  $disconnect(): void {}
}

describe('the client of a transaction', () => {
  function make() {
    const client = Object.assign(new Client(), { [Client.note]: 'noted' });
    const fenced = new FencedTx(client, new Operations(NOTHING, 'stock:1'));
    return { client, tx: fenced.proxy as typeof client, close: () => fenced.close() };
  }

  test('has what the client has, by whichever way it is asked for, but for what leaves the transaction', () => {
    const { client, tx } = make();
    expect('stock' in tx).toBe(true);
    expect('me' in tx).toBe(true);
    expect('nothing' in tx).toBe(false);
    expect(Object.keys(tx)).toEqual(Object.keys(client));
    expect(Object.getOwnPropertyNames(tx)).toEqual(Object.getOwnPropertyNames(client));
    expect(Reflect.ownKeys(tx)).toContain(Client.note);
    expect(tx[Client.note]).toBe('noted');
    expect({ ...tx }).toEqual({ ...client });
    expect(tx).toBeInstanceOf(Client);
    expect(Object.getPrototypeOf(tx)).toBe(Client.prototype);
    expect(tx.stock).toBe(client.stock);
  });

  test.each(NOT_ON_TX.map((name) => [name]))('has no %s, own or inherited', (name) => {
    for (const holder of [{ [name]: () => 'left' }, Object.create({ [name]: () => 'left' }) as object]) {
      const { proxy: tx } = new FencedTx(holder, new Operations(NOTHING, 'stock:1'));
      const got = tx as Record<string, unknown>;
      expect(name in got).toBe(false);
      expect(Reflect.ownKeys(got)).not.toContain(name);
      expect(Object.getOwnPropertyDescriptor(got, name)).toBeUndefined();
      if (name === '$extends') expect(got[name]).toBeUndefined();
      else {
        expect(got[name]).toThrow(InsideTransactionError);
        expect(got[name]).toThrow('on your client (`prisma`), not on `tx`');
      }
    }
  });

  test('calls methods and getters on what they were called on', () => {
    const { tx } = make();
    expect(tx.me()).toBe(tx);
    expect(tx.own).toBe(tx);
  });

  test('has what was set on it, as often as it is set, and deleted from it, and its client has not', () => {
    const { client, tx } = make();
    for (const said of ['one', 'two', 'two']) {
      tx.said = said;
      expect(tx.said).toBe(said);
      expect(client.said).toBe('');
    }
    const open = tx as unknown as Record<string, unknown>;
    for (const value of [1, 2]) {
      open['fresh'] = value;
      expect(open['fresh']).toBe(value);
      expect(Object.keys(tx)).toContain('fresh');
    }
    expect(delete open['fresh']).toBe(true);
    expect('fresh' in tx).toBe(false);
    Object.defineProperty(tx, 'defined', { value: 1, configurable: true });
    expect(open['defined']).toBe(1);
    expect('fresh' in client || 'defined' in client).toBe(false);
  });

  test('has what the client cannot change, too', () => {
    const client = Object.defineProperty(new Client(), 'fixed', { value: 1, enumerable: true });
    const { proxy } = new FencedTx(client, new Operations(NOTHING, 'stock:1'));
    expect(Object.keys(proxy)).toContain('fixed');
    expect(Object.getOwnPropertyDescriptor(proxy, 'fixed')).toMatchObject({ value: 1, enumerable: true });
  });

  test.each(NOT_ON_TX.map((name) => [name]))('has no %s, also if it is given one', (name) => {
    const { tx } = make();
    Reflect.set(tx, name, () => 'left');
    Reflect.defineProperty(tx, name, { value: () => 'left', configurable: true, enumerable: true });
    expect(name in tx).toBe(false);
    expect(Object.keys(tx)).not.toContain(name);
    const got = (tx as unknown as Record<string, unknown>)[name];
    if (name === '$extends') expect(got).toBeUndefined();
    else expect(got).toThrow(InsideTransactionError);
  });

  test('is refused whole once it is closed: models, operations, raw SQL, what was set; symbols stay', async () => {
    const { tx, close } = make();
    const open = tx as unknown as Record<string, Record<string, () => Promise<unknown>> & (() => Promise<unknown>)>;
    open['mine'] = (() => Promise.resolve('mine')) as never;
    close();
    await expect(tx.stock.count()).rejects.toMatchObject({ constructor: ClosedError, key: 'stock:1' });
    await expect(open['order']?.['findMany']?.()).rejects.toBeInstanceOf(ClosedError);
    for (const name of ['$executeRaw', '$queryRawUnsafe', '$transaction', '$extends', 'mine']) {
      await expect(open[name]?.()).rejects.toBeInstanceOf(ClosedError);
    }
    expect(tx[Client.note]).toBe('noted');
  });

  test('once it is closed, can be awaited, logged, and made a text or JSON, as before, and so can its models', async () => {
    const { client, tx, close } = make();
    const text = String(tx);
    close();
    expect(await tx).toBe(tx);
    expect(String(tx)).toBe(text);
    expect(JSON.parse(JSON.stringify(tx))).toEqual({});
    expect(tx.constructor).toBe(client.constructor);
    expect(inspect(tx)).toBeTypeOf('string');
    // Of a model, as of any function: a promise that nobody awaits would end the process.
    expect(await tx.stock).toBeDefined();
    expect(String(tx.stock)).toBeTypeOf('string');
    expect(JSON.stringify({ stock: tx.stock })).toBe('{}');
  });
});

describeWithShop('the client that the function of a lock is given', () => {
  const shop = new Shop();

  test('shows an operation that is logged in place of its result by its name', async () => {
    const { key } = await shop.product(10);
    await shop.client().prisma.$withLock(key, async (tx) => {
      const operation = tx.stock.findMany();
      expect(inspect({ operation })).toBe('{ operation: [stock.findMany: an operation; await it for its result] }');
      expect(Object.prototype.toString.call(operation)).toBe('[object PrismaPromise]');
      await operation;
    });
  });

  test('may be what the function returns, as with a plain transaction; it is closed then', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    type Tx = LockTx<ShopClient>;
    const ways: ReadonlyArray<() => Promise<Tx>> = [
      () => prisma.$withLock(key, (tx) => tx),
      () => prisma.$withLock(key, async (tx) => tx),
      async () => ((await prisma.$tryWithLock(key, async (tx) => tx)) as { value: Tx }).value,
      async () => ((await prisma.$oncePer(key, 60_000, async (tx) => tx)) as { value: Tx }).value,
      async () => {
        await using handle = await prisma.$lock(key);
        return await handle.$transaction(async (tx) => tx);
      },
    ];
    for (const way of ways) {
      const tx = await way();
      await expect(tx.stock.count()).rejects.toBeInstanceOf(ClosedError);
    }
  });

  test('refuses a fluent call behind its end once, to whoever awaits it, and leaves no rejection unhandled', async () => {
    const { id, key } = await shop.product(10);
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    for (const options of [{}, { models: [] }]) {
      const tx = await shop.client(options).prisma.$withLock(key, (tx) => tx);
      const { order } = tx;
      const CALLS: ReadonlyArray<readonly [string, () => PromiseLike<unknown>]> = [
        ['order.update.stock', () => tx.order.update({ where: { id }, data: { quantity: 1 } }).stock()],
        ['order.findUnique.stock.orders', () => tx.order.findUnique({ where: { id } }).stock().orders()],
        ['stock.update', () => tx.stock.update({ where: { id }, data: { quantity: 1 } })],
        ['order.update.stock', () => order.update({ where: { id }, data: { quantity: 1 } }).stock()],
      ];
      for (const [name, call] of CALLS) {
        void call();
        await expect((async () => await call())()).rejects.toMatchObject({
          code: 'CLOSED',
          key,
          message: expect.stringContaining(`\`${name}\` was not sent`),
        });
      }
    }
    // Node reports them when the promises' reactions have run.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  test('lets an operation be watched by the tools of tests, and given back', async () => {
    const { id, key } = await shop.product(10);
    await shop.client().prisma.$withLock(key, async (tx) => {
      const spy = vi.spyOn(tx.stock, 'findUnique');
      expect(await tx.stock.findUnique({ where: { id } })).toMatchObject({ id });
      expect(spy).toHaveBeenCalledOnce();
      spy.mockRestore();
      expect(await tx.stock.findUnique({ where: { id } })).toMatchObject({ id });
      expect(spy).not.toHaveBeenCalled();
    });
  });

  test('has models, operations and what extensions have added, own and inherited', async () => {
    const { id, key } = await shop.product(10);
    const extended = shop.client().prisma.$extends({
      name: 'shop',
      client: { $shop: 'here' },
      model: {
        $allModels: {
          async left(id: number): Promise<number> {
            const model = Prisma.getExtensionContext(this) as unknown as {
              findUniqueOrThrow(args: object): Promise<{ quantity: number }>;
            };
            return (await model.findUniqueOrThrow({ where: { id } })).quantity;
          },
        },
      },
      result: { stock: { label: { needs: { id: true }, compute: ({ id }) => `#${id}` } } },
    });
    await extended.$withLock(key, async (tx) => {
      expect(tx.$shop).toBe('here');
      expect('$shop' in tx).toBe(true);
      expect(['stock', 'order'].every((model) => model in tx)).toBe(true);
      await tx.stock.update({ where: { id }, data: { quantity: 7 } });
      // By the transaction, not beside it.
      expect(await tx.stock.left(id)).toBe(7);
      expect((await tx.stock.findUniqueOrThrow({ where: { id } })).label).toBe(`#${id}`);
      expect('$extends' in tx).toBe(false);
      expect((tx as unknown as { $extends: unknown }).$extends).toBeUndefined();
      expect('$transaction' in tx).toBe(false);
    });
    expect((await shop.row(id))?.quantity).toBe(7);
  });

  // Plain Prisma sets it on the client itself.
  test.each([
    ['a guard on each model', { models: [] }],
    ['a model without one', {}],
  ])('takes what a function sets on it, twice too, and gives it to nobody else: %s', async (_, options) => {
    const { key } = await shop.product(10);
    const { prisma, plain } = shop.client(options);
    const mark = Symbol('mark');
    await prisma.$withLock(key, (tx) => {
      const open = tx as unknown as Record<string | symbol, unknown>;
      for (const value of [1, 2]) {
        open['mine'] = value;
        open[mark] = value;
        expect([open['mine'], open[mark]]).toEqual([value, value]);
      }
      expect('mine' in tx && mark in tx).toBe(true);
      expect(Object.getOwnPropertyDescriptor(tx, 'mine')).toMatchObject({ value: 2, enumerable: true });
      delete open['mine'];
      expect('mine' in tx).toBe(false);
      Object.defineProperty(tx, 'mine', { value: 3, configurable: true });
      expect(open['mine']).toBe(3);
      // A fixed property could not be hidden when the transaction has ended.
      expect(Reflect.defineProperty(tx, 'fixed', { value: 4 })).toBe(false);
    });
    await prisma.$withLock(key, (tx) => {
      expect('mine' in tx).toBe(false);
      expect(mark in tx).toBe(false);
    });
    for (const client of [plain, prisma]) expect('mine' in client || mark in client).toBe(false);
  });
});
