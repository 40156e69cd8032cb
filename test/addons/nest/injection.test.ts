import 'reflect-metadata';
import { Injectable, Module, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect, test } from 'vitest';
import {
  ClientClass,
  currentTx,
  FencedLockModule,
  FencedLockService,
  getLockClientToken,
  InjectLockClient,
  WithLock,
} from '../../../src/addons/nest/index.js';
import { InvalidOptionError } from '../../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';
import { appModule, ByName, PrismaService, Reports, StockService } from './shop.js';

/** What does not compile with the decorator of Nest either. */
class Misfits {
  // @ts-expect-error: the key takes a number
  @WithLock((id: number) => `stock:${id}`)
  async sell(_id: string): Promise<void> {}

  // @ts-expect-error: it has to say that it may not have run
  @WithLock('stock:{0}', { mode: 'try', client: 'reports' })
  async trySell(_id: string): Promise<void> {}
}
void Misfits;

describeWithShop('a service of Nest', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const reports = shop.client().prisma;
  const app = () => appModule({ lock: { client: prisma }, reports });
  const compile = (...imports: object[]) => Test.createTestingModule({ imports: imports as never }).compile();
  const refused = (option: string, message = '') => ({
    constructor: InvalidOptionError,
    option,
    message: expect.stringContaining(message),
  });

  test('has the extended client by its class, the locks by theirs, and locked methods, which all sell', async () => {
    const { id, key } = await shop.product(10);
    const nest = await compile(app());
    const stock = nest.get(StockService);
    expect(stock.prisma === (prisma as unknown)).toBe(true);
    expect(nest.get(PrismaService) === (prisma as unknown)).toBe(true);
    expect(await stock.sell(id, key)).toBe(9);
    expect(await stock.sellToo(id, key)).toBe(8);
    stock.stop.goOn.open();
    expect(await stock.stopAndSell(id, key)).toBe(8);
    expect(await stock.trySell(id, `${key}:other`)).toEqual({ acquired: true, value: 7 });
  });

  test('has one of several clients by its name, also in its locked methods', async () => {
    const { key } = await shop.product(10);
    const nest = await Test.createTestingModule({ imports: [app()], providers: [ByName] }).compile();
    expect(nest.get(ByName).locks.client === reports).toBe(true);
    expect(nest.get(FencedLockService).client === (prisma as unknown)).toBe(true);
    const made = nest.get(Reports);
    // On which of the two clients it has the lock shows in whose transaction it is.
    await expect(made.byDefault(key, reports)).rejects.toMatchObject({ code: 'OUTSIDE_LOCK' });
    expect(await made.byDefault(key, prisma)).toBeGreaterThan(0);
    expect(await made.byName(key)).toBeGreaterThan(0);
  });

  test('has the client that a test puts in the place of its class, also in the locks and the locked methods', async () => {
    const { key } = await shop.product(10);
    const module = Test.createTestingModule({ imports: [app()] });
    const nest = await module.overrideProvider(PrismaService).useValue(reports).compile();
    expect(await nest.get(Reports).byDefault(key, reports)).toBeGreaterThan(0);
    const locks = nest.get(FencedLockService);
    expect(await locks.withLock(key, () => currentTx(reports) !== undefined)).toBe(true);
  });

  test('does everything that the client can by its FencedLockService', async () => {
    const { id, key } = await shop.product(10);
    const locks = (await compile(app())).get<FencedLockService<ShopClient>>(FencedLockService);
    await locks.withLock(key, (tx, lock) => {
      expect(locks.currentTx() === tx).toBe(true);
      expect(lock.key).toBe(key);
    });
    const once = () => locks.oncePer(`report ${key}`, 24 * 3_600_000, (tx) => tx.stock.count({ where: { id } }));
    expect([await once(), await once()]).toMatchObject([{ ran: true, value: 1 }, { ran: false }]);
    const handle = await locks.lock(key, { waitTime: 5_000 });
    expect(await locks.tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    expect((await locks.locks.inspect(key)).token).toBe(handle.token);
    const resumed = await locks.resumeLock(handle.toJSON());
    await resumed.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 1 } }));
    await resumed.release();
    expect((await shop.row(id))?.quantity).toBe(1);
    const permit = await locks.permit(key, { permits: 1 });
    expect(await locks.tryWithPermit(key, { permits: 1 }, () => 'in')).toEqual({ acquired: false });
    expect(await locks.withPermit(key, { permits: 2 }, (_, lock) => lock.permit)).toBe(1);
    await permit.release();
  });

  test('that is made for each request, and inherits, has its client in each', async () => {
    const { id, key } = await shop.product(10);
    class Base {
      @WithLock('{1}')
      async sell(id: number, _key: string): Promise<void> {
        await currentTx(prisma).stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest extends Base {
      @WithLock('{1}')
      async sellToo(id: number, key: string): Promise<void> {
        await this.sell(id, key);
      }
    }
    const lock = FencedLockModule.forRoot({ client: prisma });
    const nest = await Test.createTestingModule({ imports: [lock], providers: [PerRequest] }).compile();
    const [one, two] = [await nest.resolve(PerRequest), await nest.resolve(PerRequest)];
    expect(one).not.toBe(two);
    await Promise.all([one.sell(id, key), two.sellToo(id, key)]);
    expect((await shop.row(id))?.quantity).toBe(8);
  });

  test('of a module without `isGlobal` is there where that module is imported, and nowhere else', async () => {
    const lock = FencedLockModule.forRoot({ client: prisma, isGlobal: false });
    @Injectable()
    class Seller {
      constructor(@InjectLockClient() readonly client: ShopClient) {}
    }
    @Module({ providers: [Seller] })
    class Elsewhere {}
    @Module({ imports: [lock], providers: [Seller] })
    class Here {}
    await expect(compile(lock, Elsewhere)).rejects.toThrow('prisma-extension-fenced-lock.client');
    expect((await compile(Here)).get(Seller).client === prisma).toBe(true);
  });

  test('that Nest did not make uses its own `prisma`, and never that in the place of one with a name', async () => {
    const { key } = await shop.product(10);
    const { byDefault, byName } = Reports.prototype;
    const call = (method: (...args: never[]) => Promise<unknown>, self?: object) =>
      Reflect.apply(method, self, [key, prisma]);
    expect(await call(byDefault, { prisma })).toBeGreaterThan(0);
    for (const self of [undefined, {}, { reports: prisma }]) {
      await expect(call(byDefault, self)).rejects.toMatchObject(refused('client', 'byDefault is missing. Call it on'));
    }
    await expect(call(byName, { prisma })).rejects.toMatchObject(refused('client', 'byName is missing'));
    const { plain } = shop.client();
    await expect(call(byDefault, { prisma: plain })).rejects.toMatchObject(refused('client', 'is not extended by'));
    class Own {
      readonly database = prisma;

      @WithLock('{0}', { client: (self: Own) => self.database })
      async byFunction(_key: string): Promise<string> {
        return 'in';
      }
    }
    expect(await new Own().byFunction(key)).toBe('in');
  });

  test.each([
    ['client', () => ({})],
    ['client', () => undefined],
    ['client', () => ({ client: { $withLock: 1 } })],
    // What most would return.
    ['client', () => prisma],
    ['onClose', () => ({ client: prisma, onClose: () => {} })],
    ['onClosed', () => ({ client: prisma, onClosed: 5 })],
  ])('is not made with a wrong `%s`', async (option, useFactory) => {
    const imported = FencedLockModule.forRootAsync({ useFactory: useFactory as never });
    await expect(compile(imported)).rejects.toMatchObject(refused(option));
  });

  abstract class Token {}
  test.each([
    ['name', {}, {}],
    ['name', { name: 'reports' }, { name: 'reports' }],
    ['token', { token: Token }, { token: Token, name: 'reports' }],
  ])('is refused where two clients have one %s: Nest would inject the one in place of the other', async (...given) => {
    const [option, one, another] = given;
    const both = (second: ShopClient, more = {}) =>
      compile(
        FencedLockModule.forRoot({ client: prisma, disconnect: false, ...one, ...more }),
        FencedLockModule.forRoot({ client: second, ...another, ...more }),
      );
    await expect(both(reports)).rejects.toMatchObject(refused(option, 'of two FencedLockModules with two clients'));
    await expect(both(prisma)).resolves.toBeDefined();
    await expect(both(reports, { isGlobal: false })).resolves.toBeDefined();
  });

  test('tells how a class that stands for the client, and @WithLock, are used', async () => {
    const compiled = Test.createTestingModule({ providers: [PrismaService as never] }).compile();
    await expect(compiled).rejects.toMatchObject(refused('PrismaService', 'useFactory'));
    class WithMember extends ClientClass(() => prisma) {
      onModuleInit(): void {}
    }
    const wrong: [option: string, use: () => unknown][] = [
      ['ClientClass', () => ClientClass(undefined as never)],
      ['token', () => FencedLockModule.forRoot({ client: prisma, token: WithMember })],
      ['name', () => FencedLockModule.forRoot({ client: prisma, name: '' })],
      ['client', () => WithLock('k', { client: 7 as never })],
      [
        'experimentalDecorators',
        () => WithLock('k')((async () => {}) as never, { kind: 'method', name: 'm' } as never),
      ],
    ];
    for (const [option, use] of wrong) expect(use).toThrow(expect.objectContaining(refused(option)));
    // One class for each client.
    expect(ClientClass(() => prisma)).not.toBe(ClientClass(() => prisma));
    expect(getLockClientToken()).not.toBe(getLockClientToken('reports'));
  });
});
