import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ClsPluginTransactional,
  InjectTransaction,
  Propagation,
  type Transaction,
  Transactional,
  TransactionHost,
} from '@nestjs-cls/transactional';
import { ClsModule, ClsService } from 'nestjs-cls';
import { expect, test } from 'vitest';
import { FencedLockModule, WithLock } from '../../../src/addons/nest/index.js';
import { TransactionalAdapterFencedLock } from '../../../src/addons/nest-cls/index.js';
import { currentTx, InvalidOptionError } from '../../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../../support/shop.js';

const CLIENT = 'THE_CLIENT';
type Adapter = TransactionalAdapterFencedLock<ShopClient>;

@Injectable()
class Stock {
  constructor(
    readonly host: TransactionHost<Adapter>,
    @InjectTransaction() readonly tx: Transaction<Adapter>,
  ) {}

  /** As a repository that knows of no lock. */
  @Transactional<Adapter>()
  async set(id: number, quantity: number): Promise<void> {
    await this.host.tx.stock.update({ where: { id }, data: { quantity } });
  }

  async setPlainly(id: number, quantity: number): Promise<void> {
    await this.host.tx.stock.update({ where: { id }, data: { quantity } });
  }

  @Transactional<Adapter>()
  async setAndFail(id: number, quantity: number): Promise<void> {
    await this.set(id, quantity);
    throw new Error('of the transaction');
  }

  @Transactional<Adapter>(Propagation.Mandatory)
  async mandatory(id: number): Promise<number> {
    return (await this.tx.stock.findUniqueOrThrow({ where: { id } })).quantity;
  }

  @Transactional<Adapter>(Propagation.Nested)
  async nested(id: number): Promise<void> {
    await this.host.tx.stock.update({ where: { id }, data: { quantity: 5 } });
    throw new Error('of the savepoint');
  }

  @Transactional<Adapter>({ isolationLevel: 'Serializable' })
  isolation(): Promise<string> {
    return this.level();
  }

  @Transactional<Adapter>({ timeout: 5 })
  async soon(): Promise<void> {}

  @Transactional<Adapter>()
  async level(): Promise<string> {
    const [row] = await this.tx.$queryRaw<
      { level: string }[]
    >`SELECT current_setting('transaction_isolation') AS level`;
    return row?.level ?? '';
  }
}

@Injectable()
class Sales {
  constructor(
    readonly stock: Stock,
    readonly host: TransactionHost<Adapter>,
  ) {}

  @WithLock('{0}')
  async locked<R>(_key: string, work: () => Promise<R>): Promise<R> {
    return await work();
  }

  @WithLock('{0}')
  @Transactional<Adapter>()
  async lockedTransaction<R>(_key: string, work: () => Promise<R>): Promise<R> {
    return await work();
  }

  @Transactional<Adapter>()
  async transaction<R>(work: () => Promise<R>): Promise<R> {
    return await work();
  }
}

describeWithShop('@Transactional() and TransactionHost', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const quantity = async (id: number) => (await shop.row(id))?.quantity;

  async function made(defaultTxOptions = {}) {
    const adapter = new TransactionalAdapterFencedLock<ShopClient>({ clientToken: CLIENT, defaultTxOptions });
    const plugin = new ClsPluginTransactional({ adapter, enableTransactionProxy: true });
    const nest = await Test.createTestingModule({
      imports: [FencedLockModule.forRoot({ client: prisma, token: CLIENT }), ClsModule.forRoot({ plugins: [plugin] })],
      providers: [Stock, Sales],
    }).compile();
    await nest.init();
    return {
      stock: nest.get(Stock),
      sales: nest.get(Sales),
      host: nest.get<TransactionHost<Adapter>>(TransactionHost),
      cls: nest.get(ClsService),
    };
  }

  test('inside a lock have its `tx`, with a CLS context and without', async () => {
    const { id, key } = await shop.product(10);
    const { host, cls, sales, stock } = await made();
    expect(host.tx === prisma).toBe(true);
    const seen = () => prisma.$withLock(key, (tx) => host.tx === tx && currentTx(prisma) === tx);
    expect(await seen()).toBe(true);
    expect(await cls.run(seen)).toBe(true);
    expect(await sales.locked(key, async () => host.tx === currentTx(prisma))).toBe(true);
    // For what asks for a transaction there is one in a transactional method.
    expect(await sales.lockedTransaction(key, () => stock.mandatory(id))).toBe(10);
    expect(await sales.lockedTransaction(key, async () => 'stock' in host.tx)).toBe(true);
    expect(host.tx === prisma).toBe(true);
  });

  test.each(['locked', 'lockedTransaction'] as const)(
    'join the transaction of a lock (%s): all is rolled back with it',
    async (how) => {
      const { id, key } = await shop.product(10);
      const { stock, sales } = await made();
      const failed = sales[how](key, async () => {
        await stock.set(id, 9);
        await stock.setPlainly(id, 8);
        expect((await currentTx(prisma).stock.findUniqueOrThrow({ where: { id } })).quantity).toBe(8);
        throw new Error('no sale');
      });
      await expect(failed).rejects.toThrow('no sale');
      expect(await quantity(id)).toBe(10);
      await sales[how](key, () => stock.set(id, 7));
      expect(await quantity(id)).toBe(7);
      expect((await shop.row(id))?.fence).toBeGreaterThan(0n);
    },
  );

  test('stay inside a lock that is lost while they work: what they write then is refused', async () => {
    const { id, key } = await shop.product(10);
    const { sales, stock } = await made();
    const goOn = gate();
    let late: Promise<void> | undefined;
    const leaving = new AbortController();
    const sale = prisma.$withLock(
      key,
      () =>
        sales.transaction(() => {
          late = goOn.opened.then(() => stock.setPlainly(id, 0));
          late.catch(() => {});
          leaving.abort(new Error('no sale'));
          return late;
        }),
      { signal: leaving.signal },
    );
    await expect(sale).rejects.toThrow('no sale');
    goOn.open();
    await expect(late).rejects.toMatchObject({ code: 'CLOSED' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('doom the transaction of the lock where they fail, also if that is caught', async () => {
    const { id, key } = await shop.product(10);
    const { stock, sales } = await made();
    const locked = sales.locked(key, () => stock.setAndFail(id, 9).catch(() => {}));
    await expect(locked).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: new Error('of the transaction') });
    expect(await quantity(id)).toBe(10);
  });

  test('write in the transaction of the innermost lock, not in that around it', async () => {
    const [outer, inner] = [await shop.product(10), await shop.product(10)];
    const { stock, sales, host } = await made();
    const failed = sales.lockedTransaction(outer.key, async () => {
      await prisma.$withLock(inner.key, (tx) => stock.setPlainly(inner.id, 1).then(() => tx.stock.count()), {
        nested: 'allow',
      });
      await host.tx.stock.update({ where: { id: outer.id }, data: { quantity: 1 } });
      throw new Error('of the outer one');
    });
    await expect(failed).rejects.toThrow('of the outer one');
    expect([await quantity(outer.id), await quantity(inner.id)]).toEqual([10, 1]);
  });

  test('work in a transaction of a handle, and are refused the options that it cannot have any more', async () => {
    const { id, key } = await shop.product(10);
    const { stock } = await made({ timeout: 1_000 });
    await using handle = await prisma.$lock(key);
    await handle.$transaction(() => stock.set(id, 9));
    const failed = handle.$transaction(async () => {
      await stock.set(id, 8);
      throw new Error('no sale');
    });
    await expect(failed).rejects.toThrow('no sale');
    expect(await quantity(id)).toBe(9);
    await expect(handle.$transaction(() => stock.isolation())).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: 'isolationLevel',
      message: expect.stringContaining('`handle.$transaction(fn, { isolationLevel })`'),
    });
    await expect(handle.$transaction(() => stock.soon())).rejects.toMatchObject({ option: 'timeout' });
    const serializable = handle.$transaction(() => stock.isolation(), { isolationLevel: 'Serializable' });
    expect(await serializable).toBe('serializable');
  });

  test('outside of a lock have a transaction of Prisma, with its options and savepoints', async () => {
    const { id } = await shop.product(10);
    const { stock, sales } = await made({ isolationLevel: 'RepeatableRead' });
    await expect(stock.setAndFail(id, 9)).rejects.toThrow('of the transaction');
    expect(await quantity(id)).toBe(10);
    expect([await stock.isolation(), await stock.level()]).toEqual(['serializable', 'repeatable read']);
    await sales.transaction(async () => {
      await stock.set(id, 9);
      await expect(stock.nested(id)).rejects.toThrow('of the savepoint');
    });
    expect(await quantity(id)).toBe(9);
  });

  test('inside a lock are refused what it cannot give: another isolation level, a savepoint', async () => {
    const { id, key } = await shop.product(10);
    const { stock, sales } = await made({ isolationLevel: 'RepeatableRead' });
    expect(await sales.locked(key, () => stock.level())).toBe('read committed');
    await expect(sales.locked(key, () => stock.isolation())).rejects.toMatchObject({ option: 'isolationLevel' });
    await expect(sales.lockedTransaction(key, () => stock.nested(id))).rejects.toMatchObject({
      code: 'INSIDE_TRANSACTION',
    });
    expect(await quantity(id)).toBe(10);
  });

  test('refuse a lock inside a transaction, which would wait while it holds a connection', async () => {
    const { key } = await shop.product(10);
    const { sales } = await made();
    await expect(sales.transaction(() => sales.locked(key, async () => {}))).rejects.toMatchObject({
      code: 'INSIDE_TRANSACTION',
      key,
      message: expect.stringMatching(/^`locked`, which has `@WithLock`, was called .* above `@Transactional\(\)`/),
    });
    // That of a call which the method makes by itself is left as it is.
    const { id } = await shop.product(10);
    const call = sales.locked(key, () => prisma.stock.update({ where: { id }, data: { quantity: 0 } }));
    await expect(call).rejects.toThrow('`stock.update` was called on a client');
  });

  test('say so where the client is none that locks', async () => {
    expect(() => new TransactionalAdapterFencedLock({} as never)).toThrow(InvalidOptionError);
    const adapter = new TransactionalAdapterFencedLock<ShopClient>({ clientToken: CLIENT });
    const { plain } = shop.client();
    for (const client of [undefined, {}, plain]) {
      expect(() => adapter.optionsFactory(client as never)).toThrow(expect.objectContaining({ option: 'clientToken' }));
    }
  });
});
