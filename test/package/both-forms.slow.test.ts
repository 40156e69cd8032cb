import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type * as Form from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient, sale } from '../support/shop.js';
import { Packed } from './packed.js';

// One process has both forms where an application is ESM and a library that it uses is CommonJS, or the reverse.
let packed: Packed;
let esm: typeof Form;
let cjs: typeof Form;

beforeAll(async () => {
  packed = await Packed.install();
  const fromHere = createRequire(join(packed.folder, 'here.js'));
  cjs = fromHere('prisma-extension-fenced-lock') as typeof Form;
  esm = (await import(join(packed.home, 'dist/index.js'))) as typeof Form;
});
afterAll(() => packed.remove());

/** One error of each class. */
const errorsOf = (form: typeof Form): Form.FencedLockError[] => [
  new form.LockTimeoutError('k', '1 ms'),
  new form.LockUnavailableError('k', undefined),
  new form.LockLostError('k', 'gone'),
  new form.StaleTokenError('k', 1n, 'Stock'),
  new form.TransactionAbortedError('k', 'timeout', 'it was.'),
  new form.CommitUnknownError('k', '1', undefined),
  new form.InsideTransactionError('it was.'),
  new form.OutsideLockError('it was.'),
  new form.ReentryError('k'),
  new form.NestedError('k', 'l'),
  new form.ClosedError('it was.'),
  new form.NotInstalledError(undefined),
  new form.InvalidOptionError('key', 'is bad.'),
];

describe('instanceof', () => {
  test.each(['esm', 'cjs'])('holds for the errors of the other form, class by class: those of %s', (name) => {
    const [own, other] = name === 'esm' ? [esm, cjs] : [cjs, esm];
    expect(own.FencedLockError).not.toBe(other.FencedLockError);
    const classes = Object.values(other).filter((value) => value.prototype instanceof Error) as unknown[] as Array<
      new () => Error
    >;
    expect(classes).toHaveLength(15);
    for (const error of errorsOf(own)) {
      const holding = classes.filter((type) => error instanceof type).map((type) => type.name);
      expect(holding.toSorted()).toEqual(['FencedLockError', error.name].toSorted());
    }
  });

  test('does not hold for what only looks like one, nor for a class that was derived from one', () => {
    class Busy extends esm.LockTimeoutError {}
    const error = new cjs.LockTimeoutError('k', '1 ms');
    expect(error).not.toBeInstanceOf(Busy);
    expect(new Busy('k', '1 ms')).toBeInstanceOf(Busy);
    expect(new Busy('k', '1 ms')).toBeInstanceOf(cjs.LockTimeoutError);
    expect(Object.assign(new Error('busy'), { code: 'LOCK_TIMEOUT' })).not.toBeInstanceOf(esm.LockTimeoutError);
    expect([null, undefined, 'LOCK_TIMEOUT'].some((value) => (value as unknown) instanceof esm.FencedLockError)).toBe(
      false,
    );
  });

  test('lets toFencedLockError find the error of the other form, in the form of Prisma too', () => {
    const error = new cjs.StaleTokenError('k', 1n, 'Stock');
    const ofPrisma = Object.assign(new Error('of Prisma'), { code: error.code, meta: error.meta });
    expect(esm.toFencedLockError(error)).toBe(error);
    expect(esm.toFencedLockError(ofPrisma)).toBe(error);
  });
});

describeWithShop('two clients, one of each form', () => {
  const shop = new Shop();
  const { app: connectionString } = inject('postgres');

  /** On one client of Prisma, as two libraries of an application would be given it. */
  function clients() {
    const plain = shop.unextended(new PrismaPg({ connectionString }));
    const redis = shop.redis();
    const [one, other] = [esm, cjs].map((form) => plain.$extends(form.fencedLock({ redis })));
    return { one, other } as { one: ShopClient; other: ShopClient };
  }

  test('lose no update of one key, on one pool', async () => {
    const { id, key } = await shop.product(20);
    const { one, other } = clients();
    await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 2 ? one : other).$withLock(key, sale(id))));
    expect((await shop.row(id))?.quantity).toBe(0);
  });

  test('know which locks the async context holds, whichever form took them', async () => {
    const { key } = await shop.product(1);
    const { one, other } = clients();
    for (const [outer, inner] of [
      [one, other],
      [other, one],
    ] as const) {
      const again = outer.$withLock(key, () => inner.$withLock(key, () => 'in'));
      await expect(again).rejects.toMatchObject({ code: 'REENTRY' });
      const another = outer.$withLock(key, () => inner.$withLock(`${key}:b`, () => 'in'));
      await expect(another).rejects.toMatchObject({ code: 'NESTED' });
    }
  });

  test('refuse a write of the other client inside the function of a lock', async () => {
    const { id, key } = await shop.product(10);
    const { one, other } = clients();
    for (const [outer, inner] of [
      [one, other],
      [other, one],
    ] as const) {
      const outside = outer.$withLock(key, () => inner.stock.update({ where: { id }, data: { quantity: 0 } }));
      await expect(outside).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    }
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
