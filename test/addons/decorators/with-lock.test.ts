import 'reflect-metadata';
import { describe, expect, test } from 'vitest';
import * as decorators from '../../../src/addons/decorators/index.js';
import { toKeys } from '../../../src/addons/decorators/key-of.js';
import { InvalidOptionError } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';
import { compiled, KINDS, type Kind } from './compiled.js';
import type * as Fixture from './fixtures/sale.js';

const { WithLock } = decorators;

/** One that does not wait may be told "not now" for a moment longer. */
const onceFree = <R extends { readonly acquired: boolean }>(call: () => Promise<R>) =>
  eventually('it is free', async () => {
    const result = await call();
    return result.acquired && result;
  });

describe.each(Object.keys(KINDS) as Kind[])('a method with a %s decorator', (kind) => {
  const modules = { '../../../../src/addons/decorators/index.js': decorators };
  const { Sale, Stocktaking } = compiled<typeof Fixture>('sale.ts', kind, modules);

  describeWithShop('and real servers', () => {
    const shop = new Shop();
    const { prisma } = shop.client();

    test('loses no update, of two processes at once', async () => {
      const { id, key } = await shop.product(20);
      const sales = [new Sale(prisma), new Sale(shop.client().prisma)] as const;
      await Promise.all(Array.from({ length: 20 }, (_, index) => sales[(index % 2) as 0 | 1].sell(id, key)));
      expect((await shop.row(id))?.quantity).toBe(0);
      expect((await shop.row(id))?.fence).toBeGreaterThan(0n);
    });

    test('excludes that of another class with the same key', async () => {
      const { id, key } = await shop.product(10);
      const inside = gate();
      const goOn = gate();
      const holder = new Sale(prisma, () => {
        inside.open();
        return goOn.opened;
      });
      const held = holder.sell(id, key);
      await inside.opened;
      const contender = new Stocktaking(shop.client().prisma);
      expect(await contender.count(key, id)).toEqual({ acquired: false });
      goOn.open();
      await held;
      expect(await onceFree(() => contender.count(key, id))).toEqual({ acquired: true, value: 9 });
    });

    test('of permits runs beside one other, and knows which it has', async () => {
      const { key } = await shop.product(1);
      const [inside, goOn] = [gate(), gate()];
      const holder = new Sale(prisma, () => {
        inside.open();
        return goOn.opened;
      });
      const held = holder.permit(key);
      await inside.opened;
      expect(await new Sale(shop.client().prisma).permit(key)).toEqual({ acquired: true, value: 1 });
      const taken = await prisma.$permit(key, { permits: 2 });
      expect(await new Sale(prisma).permit(key)).toEqual({ acquired: false });
      goOn.open();
      expect(await held).toEqual({ acquired: true, value: 0 });
      await taken.release();
    });

    test('joins that of the same key which calls it, in one transaction', async () => {
      const { id, key } = await shop.product(10);
      const failing = new Sale(prisma, () => {
        throw new Error('no sale');
      });
      expect(await new Sale(prisma).keys({ id, key })).toEqual([key]);
      expect((await shop.row(id))?.quantity).toBe(9);
      await expect(failing.keys({ id, key })).rejects.toThrow('no sale');
      expect((await shop.row(id))?.quantity).toBe(9);
    });

    test('takes the keys that the arguments say, and adds nothing to them', async () => {
      const { id, key } = await shop.product(10);
      const sale = new Sale(prisma);
      expect(await sale.several(key, { id })).toEqual(['all', `${key}:${id}`, `${key}:one`].toSorted());
      expect(await sale.several(key, { id: 7n })).toContain(`${key}:7`);
      Stocktaking.prisma = prisma;
      expect(await Stocktaking.ofTheClass(key)).toBe(key);
    });

    test.each([undefined, {}, Number.NaN])('does not run with %s in the place of a part', async (part) => {
      const { key } = await shop.product(10);
      const refused = {
        option: 'key',
        message: expect.stringContaining('{1.id} is no string, finite number or bigint'),
      };
      await expect(new Sale(prisma).several(key, { id: part } as never)).rejects.toMatchObject(refused);
    });

    test('of mode try tells that it has not run, and else gives its own result', async () => {
      const { id, key } = await shop.product(10);
      const holder = await shop.client().prisma.$lock(key);
      expect(await new Sale(prisma).trySell(key, id)).toEqual({ acquired: false });
      expect((await shop.row(id))?.quantity).toBe(10);
      await holder.release();
      expect(await onceFree(() => new Sale(prisma).trySell(key, id))).toEqual({ acquired: true, value: 9 });
    });

    test('takes the options of a lock, and rejects as $withLock does', async () => {
      const { id, key } = await shop.product(10);
      const holder = await shop.client().prisma.$lock(key);
      await expect(new Sale(prisma).soon(key)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key });
      await holder.release();
      expect(await new Sale(prisma).soon(key)).toBe('had');
      const error = new Error('of the caller');
      expect(await new Sale(prisma).fail(key, error).catch((caught) => caught)).toBe(error);
      expect((await shop.row(id))?.quantity).toBe(10);
    });

    test('rejects where its key or its client cannot be had, or is not extended, and does not throw', async () => {
      const { soon, keyless } = new Sale(prisma);
      const called = (method: (...args: never[]) => Promise<unknown>, self: object | undefined) =>
        Reflect.apply(method, self, ['k']);
      await expect(called(keyless, { prisma })).rejects.toThrow('no key');
      const { plain } = shop.client();
      for (const [self, why] of [
        [undefined, 'is missing. Call it on an object that has it as `prisma`'],
        [{ prisma: null }, 'is missing. Call it on'],
        [{ prisma: plain }, 'is there, and is not extended by fencedLock. Give it what'],
      ] as const) {
        await expect(called(soon, self)).rejects.toMatchObject({
          constructor: InvalidOptionError,
          option: 'client',
          message: expect.stringContaining(`\`client\` of the locked method soon ${why}`),
        });
      }
    });
  });

  test('keeps name, length, properties and metadata', () => {
    const { sell, marked } = Sale.prototype;
    expect([sell.name, sell.length]).toEqual(['sell', 2]);
    expect([marked.name, marked.length]).toEqual(['marked', 1]);
    expect((marked as { readonly mark?: unknown }).mark).toBe('marked');
    expect(Reflect.getOwnMetadata('mark', marked)).toBe('metadata');
    expect(Object.keys(Sale.prototype)).toEqual([]);
    const types: unknown = Reflect.getMetadata('design:paramtypes', Sale.prototype, 'sell');
    expect(types).toEqual(kind === 'legacy' ? [Number, String] : undefined);
  });
});

describe('a decorator that cannot be is refused when the class is defined:', () => {
  const context = (kind: string) => ({ kind, name: 'sell' }) as never;
  const method = async () => {};
  const apply = (options: object) => () => WithLock('k', options as never);
  test.each<[string, string, () => unknown]>([
    ['a mode that there is not', 'mode', apply({ mode: 'wiat' })],
    ['a wait time where nothing waits', 'waitTime', apply({ mode: 'try', waitTime: 1 })],
    ['a client that is no function', 'client', apply({ client: {} })],
    ['an option of the lock out of its range', 'leaseTime', apply({ leaseTime: 1 })],
    ['an option that there is not', 'waittime', apply({ waittime: 1 })],
    ['no options', 'options', () => WithLock('k', null as never)],
    ['no key', 'key', () => WithLock(undefined as never)],
    ['no key in a list', 'key', () => WithLock([])],
    ['a field', 'WithLock', () => WithLock('k')(undefined as never, context('field'))],
    ['a legacy field', 'WithLock', () => WithLock('k')({}, 'sell', undefined as never)],
    ['a legacy accessor', 'WithLock', () => WithLock('k')({}, 'sell', { get: () => method } as never)],
    ['a generator', 'WithLock', () => WithLock('k')(async function* () {} as never, context('method'))],
  ])('%s', (_, option, define) => {
    expect(define).toThrow(expect.objectContaining({ constructor: InvalidOptionError, option }));
  });
});

describe('braces in a template that are no placeholder', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: one of the mistakes that are looked for
  test.each(['stock:{id}', 'stock:{ 0 }', 'stock:{0', 'stock:0}', 'stock:{}', 'stock:{0}:{id}', 'stock:${0}'])(
    'are refused when the class is defined: %s',
    (template) => {
      const refused = {
        option: 'key',
        message: expect.stringContaining('is no placeholder: there are {0} for the first'),
      };
      for (const key of [template, ['stock:all', template]]) {
        expect(() => WithLock(key as never)).toThrow(expect.objectContaining(refused));
      }
    },
  );

  test('are a part of the key that a function gives', () => {
    expect(toKeys((id: number) => `{stock}:${id}`)(undefined, [1])).toBe('{stock}:1');
  });
});
