import 'reflect-metadata';
import { Injectable, Module, Scope } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { expect, test } from 'vitest';
import {
  ClientClass,
  currentLock,
  currentTx,
  FencedLockModule,
  FencedLockService,
  getLockClientToken,
  getLockServiceToken,
  InjectLockClient,
  WithLock,
} from '../../../src/addons/nest/index.js';
import { InvalidOptionError } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
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
  const compile = (lock = { client: prisma }) =>
    Test.createTestingModule({ imports: [appModule({ lock, reports })] }).compile();

  test('has the extended client by its class, the locks by theirs, and locked methods, which all sell', async () => {
    const { id, key } = await shop.product(10);
    const nest = await compile();
    const stock = nest.get(StockService);
    expect(stock.prisma === (prisma as unknown)).toBe(true);
    expect(nest.get(PrismaService) === (prisma as unknown)).toBe(true);
    expect(await stock.sell(id, key)).toBe(9);
    expect(await stock.sellToo(id, key)).toBe(8);
    stock.stop.goOn.open();
    expect(await stock.stopAndSell(id, key)).toBe(8);
    const tried = await eventually('it is free', async () => {
      const result = await stock.trySell(id, key);
      return result.acquired && result.value;
    });
    expect(tried).toBe(7);
    expect((await shop.row(id))?.quantity).toBe(7);
  });

  test('needs no client of its class: a locked method has that of the module, or of the one that it names', async () => {
    const { key } = await shop.product(10);
    const nest = await compile();
    const made = nest.get(Reports);
    // On which of the two clients it has the lock shows in whose transaction it is.
    await expect(made.byDefault(key, reports)).rejects.toMatchObject({ code: 'OUTSIDE_LOCK' });
    expect(await made.byDefault(key, prisma)).toBeGreaterThan(0);
    expect(await made.byName(key)).toBeGreaterThan(0);
  });

  test('has the client that a test puts in the place of its class, also in the locks and the locked methods', async () => {
    const { key } = await shop.product(10);
    const nest = await Test.createTestingModule({ imports: [appModule({ lock: { client: prisma }, reports })] })
      .overrideProvider(PrismaService)
      .useValue(reports)
      .compile();
    expect(await nest.get(Reports).byDefault(key, reports)).toBeGreaterThan(0);
    expect(nest.get(getLockClientToken()) === (reports as unknown)).toBe(true);
    const locks = nest.get(FencedLockService);
    await expect(locks.withLock(key, () => currentTx(prisma))).rejects.toMatchObject({ code: 'OUTSIDE_LOCK' });
    expect(await locks.withLock(key, () => currentTx(reports) !== undefined)).toBe(true);
  });

  test('that Nest has not made is told so where it has no client, and otherwise that its client is not extended', async () => {
    const { plain } = shop.client();
    const { byDefault, byName } = Reports.prototype;
    const expectTold = async (
      method: (...args: never[]) => Promise<unknown>,
      self: object | undefined,
      why: string,
    ) => {
      await expect(Reflect.apply(method, self, ['k'])).rejects.toMatchObject({
        constructor: InvalidOptionError,
        option: 'client',
        message: expect.stringContaining(`\`client\` of the locked method ${method.name} ${why}`),
      });
    };
    for (const self of [undefined, {}, { reports: prisma }]) {
      await expectTold(
        byDefault,
        self,
        'is missing: Nest has not injected that of FencedLockModule, and the object that the method was called on has no ' +
          '`prisma` either. Call it on an object that Nest has made, or, in a unit test, give the object a `prisma`.',
      );
    }
    await expectTold(
      byName,
      { prisma },
      'is missing: Nest has not injected that of the FencedLockModule named reports. Call the method on an object that ' +
        'Nest has made, in a unit test with Test.createTestingModule.',
    );
    await expectTold(
      byDefault,
      { prisma: plain },
      'is there, and is not extended by fencedLock. Give it what new PrismaClient(…).$extends(fencedLock(…)) returns, or in ' +
        'a unit test what fakeLocks(…) of `prisma-extension-fenced-lock/testing` returns.',
    );
  });

  test('has one of several clients by its name', async () => {
    const nest = await Test.createTestingModule({
      imports: [appModule({ lock: { client: prisma }, reports })],
      providers: [ByName],
    }).compile();
    expect(nest.get(ByName).locks.client === reports).toBe(true);
    expect(nest.get(FencedLockService).client === (prisma as unknown)).toBe(true);
    expect(nest.get(getLockServiceToken('reports'))).not.toBe(nest.get(getLockServiceToken()));
    expect(nest.get(getLockClientToken('reports')) === reports).toBe(true);
  });

  test('does everything that the client can by its FencedLockService', async () => {
    const { id, key } = await shop.product(10);
    const locks = (await compile()).get<FencedLockService<ShopClient>>(FencedLockService);
    await locks.withLock(key, (tx, lock) => {
      expect(locks.currentTx() === tx).toBe(true);
      expect(lock.key).toBe(key);
    });
    const day = 24 * 3_600_000;
    expect(await locks.oncePer(`report ${key}`, day, (tx) => tx.stock.count({ where: { id } }))).toEqual({
      ran: true,
      value: 1,
    });
    expect(await locks.oncePer(`report ${key}`, day, () => 'again')).toMatchObject({ ran: false });
    const handle = await locks.lock(key, { waitTime: 5_000 });
    expect(await locks.tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    expect((await locks.locks.inspect(key)).token).toBe(handle.token);
    const resumed = await locks.resumeLock(handle.toJSON());
    await resumed.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 1 } }));
    await resumed.release();
    expect((await shop.row(id))?.quantity).toBe(1);
  });

  test('that is made for each request has its client in each', async () => {
    const { id, key } = await shop.product(10);
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @WithLock('{1}')
      async sell(id: number, _key: string): Promise<void> {
        await currentTx(prisma).stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
      }
    }
    const lock = FencedLockModule.forRoot({ client: prisma });
    const nest = await Test.createTestingModule({ imports: [lock], providers: [PerRequest] }).compile();
    const [one, two] = [await nest.resolve(PerRequest), await nest.resolve(PerRequest)];
    expect(one).not.toBe(two);
    await Promise.all([one.sell(id, key), two.sell(id, key)]);
    expect((await shop.row(id))?.quantity).toBe(8);
  });

  test('has its client once, whatever it locks and inherits', async () => {
    const { key } = await shop.product(10);
    class Base {
      @WithLock('{0}')
      async one(_key: string): Promise<string> {
        return currentLock(prisma).key;
      }
    }
    @Injectable()
    class Derived extends Base {
      @WithLock('{0}')
      async two(key: string): Promise<string> {
        return await this.one(key);
      }
    }
    const lock = FencedLockModule.forRoot({ client: prisma });
    const nest = await Test.createTestingModule({ imports: [lock], providers: [Derived] }).compile();
    expect(await nest.get(Derived).two(key)).toBe(key);
    const injected = (type: object) => Reflect.getMetadata('self:properties_metadata', type) as unknown[];
    expect([injected(Base), injected(Derived)]).toMatchObject([
      [{ key: getLockClientToken() }],
      [{ key: getLockClientToken() }],
    ]);
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
    await expect(Test.createTestingModule({ imports: [lock, Elsewhere] }).compile()).rejects.toThrow(
      'prisma-extension-fenced-lock.client',
    );
    const nest = await Test.createTestingModule({ imports: [Here] }).compile();
    expect(nest.get(Seller).client === prisma).toBe(true);
  });

  test('that Nest did not make uses its own `prisma`, and never that in the place of one with a name', async () => {
    const { id, key } = await shop.product(10);
    class Own {
      readonly prisma = prisma;

      @WithLock('{1}')
      async sell(id: number, _key: string): Promise<void> {
        await this.prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 1 } }));
      }

      @WithLock('{0}', { client: 'reports' })
      async count(_key: string): Promise<void> {}

      @WithLock('{0}', { client: (self: Own) => self.prisma })
      async byFunction(_key: string): Promise<string> {
        return 'in';
      }
    }
    await new Own().sell(id, key);
    expect((await shop.row(id))?.quantity).toBe(1);
    expect(await new Own().byFunction(key)).toBe('in');
    await expect(new Own().count(key)).rejects.toMatchObject({ constructor: InvalidOptionError, option: 'client' });
  });

  test.each([{}, undefined, { client: undefined }, { client: { $withLock: 1 } }])(
    'is not made where the client is none that locks: %j',
    async (options) => {
      const imports = [FencedLockModule.forRootAsync({ useFactory: () => options as never })];
      const compiled = Test.createTestingModule({ imports }).compile();
      await expect(compiled).rejects.toMatchObject({ constructor: InvalidOptionError, option: 'client' });
    },
  );

  test.each([
    ['onClose', { onClose: () => {} }],
    ['onClosed', { onClosed: 5 }],
  ])('is not made with an option that is not known, or is no function: %s', async (option, given) => {
    const imports = [FencedLockModule.forRootAsync({ useFactory: () => ({ client: prisma, ...given }) as never })];
    const compiled = Test.createTestingModule({ imports }).compile();
    await expect(compiled).rejects.toMatchObject({ constructor: InvalidOptionError, option });
  });

  test('is one of several of one name, or of one token: refused, because Nest would inject the one in place of the other', async () => {
    const other = shop.client().prisma;
    const compiled = (one: object, another: object, second = other) => {
      const imports = [
        FencedLockModule.forRoot({ client: prisma, disconnect: false, ...one }),
        FencedLockModule.forRoot({ client: second, disconnect: false, ...another }),
      ];
      return Test.createTestingModule({ imports }).compile();
    };
    abstract class Client {}
    await expect(compiled({ name: 'reports' }, { name: 'reports' })).rejects.toMatchObject({
      option: 'name',
      message: expect.stringContaining('"reports" of two FencedLockModules with two clients'),
    });
    for (const [token, shown] of [
      [Client, '"Client"'],
      ['CLIENT', '"CLIENT"'],
      [Symbol('client'), '"Symbol(client)"'],
    ] as const) {
      await expect(compiled({ token }, { token, name: 'reports' })).rejects.toMatchObject({
        option: 'token',
        message: expect.stringContaining(`${shown} of two FencedLockModules with two clients`),
      });
    }
    const feature = { token: Client, name: 'reports', isGlobal: false };
    await expect(compiled(feature, feature)).resolves.toBeDefined();
    await expect(compiled({ token: Client }, { token: Client, name: 'reports' }, prisma)).resolves.toBeDefined();
  });

  test('is one of several without a name: refused, because Nest would inject the one in place of the other', async () => {
    const other = shop.client().prisma;
    const unnamed = [prisma, other].map((client) => FencedLockModule.forRoot({ client, disconnect: false }));
    await expect(Test.createTestingModule({ imports: unnamed }).compile()).rejects.toMatchObject({
      option: 'name',
      message: expect.stringMatching(
        /FencedLockModule is imported twice .* import the module once, in the root module/,
      ),
    });
    const twice = [true, true].map((disconnect) =>
      FencedLockModule.forRoot({ client: prisma, disconnect: !disconnect }),
    );
    await expect(Test.createTestingModule({ imports: twice }).compile()).resolves.toBeDefined();
    const named = [
      FencedLockModule.forRoot({ client: prisma, disconnect: false }),
      FencedLockModule.forRoot({ client: other, disconnect: false, name: 'reports' }),
    ];
    const nest = await Test.createTestingModule({ imports: named }).compile();
    expect(nest.get(getLockClientToken('reports')) === other).toBe(true);
  });

  test('is not made of a factory that returns the client itself, and says so', async () => {
    const imports = [FencedLockModule.forRootAsync({ useFactory: () => prisma as never })];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toMatchObject({
      constructor: InvalidOptionError,
      option: 'useFactory',
      message: expect.stringContaining('{ client }'),
    });
  });

  test('that is listed instead of the client is refused, and says what to do', async () => {
    const compiled = Test.createTestingModule({ providers: [PrismaService as never] }).compile();
    await expect(compiled).rejects.toMatchObject({
      constructor: InvalidOptionError,
      option: 'PrismaService',
      message: expect.stringContaining('useFactory'),
    });
    expect(() => ClientClass(undefined as never)).toThrow(InvalidOptionError);
    class WithMember extends ClientClass(() => prisma) {
      onModuleInit(): void {}
    }
    class Extended extends WithMember {}
    for (const token of [WithMember, Extended]) {
      expect(() => FencedLockModule.forRoot({ client: prisma, token })).toThrow(
        expect.objectContaining({ option: 'token', message: expect.stringContaining('`onModuleInit`') }),
      );
    }
    expect(ClientClass(() => prisma)).not.toBe(ClientClass(() => prisma));
    expect(() => FencedLockModule.forRoot({ client: prisma, name: '' })).toThrow(InvalidOptionError);
    expect(() => WithLock('k', { client: 7 as never })).toThrow(InvalidOptionError);
    expect(() => (WithLock('k') as (...given: unknown[]) => void)(() => {}, { kind: 'method', name: 'm' })).toThrow(
      expect.objectContaining({ option: 'experimentalDecorators' }),
    );
  });
});
