import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { fakeLocks } from '../../src/addons/testing/index.js';
import { InvalidOptionError } from '../../src/base/errors.js';
import { type FencedLockOptions, fencedLock } from '../../src/index.js';
import { checkClient } from '../../src/prisma/client.js';
import type { AdapterFactory, PrismaInternals } from '../../src/prisma/internals.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop } from '../support/shop.js';

/** As much of a Prisma client's inside as is looked at. */
function internals(provider: string, adapter: unknown): PrismaInternals {
  return {
    _activeProvider: provider,
    _engineConfig: adapter === undefined ? {} : { adapter: adapter as AdapterFactory },
    _runtimeDataModel: { models: {} },
  } as unknown as PrismaInternals;
}
const SECRET = 'postgresql://user:s3cret@127.0.0.1:1/shop';
const ADAPTER = new PrismaPg({ connectionString: SECRET });

function refusal(call: () => unknown): InvalidOptionError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect((error as Error).message).not.toContain('s3cret');
    return error as InvalidOptionError;
  }
  throw new Error('it was not refused');
}

describe('the Prisma client', () => {
  test.each(['mysql', 'cockroachdb'])('for %s is refused', (provider) => {
    const { option, message } = refusal(() => checkClient(internals(provider, ADAPTER)));
    expect(option).toBe('datasource');
    expect(message).toContain(`must be PostgreSQL, and this client's is ${provider}`);
  });

  test('without a driver adapter is refused', () => {
    const { option, message } = refusal(() => checkClient(internals('postgresql', undefined)));
    expect(option).toBe('adapter');
    expect(message).toContain('PrismaPg');
  });

  test('of another Prisma is refused', () => {
    const { option, message } = refusal(() =>
      checkClient({ ...internals('postgresql', ADAPTER), _runtimeDataModel: undefined } as unknown as PrismaInternals),
    );
    expect(option).toBe('client');
    expect(message).toContain('Prisma 7');
  });

  test('with a query_timeout on its pool is refused, which would commit what was rolled back', () => {
    const adapter = new PrismaPg({ connectionString: SECRET, query_timeout: 5_000 });
    const { option, message } = refusal(() => checkClient(internals('postgresql', adapter)));
    expect(option).toBe('query_timeout');
    expect(message).toContain('Use statement_timeout');
  });

  test('for PostgreSQL with an adapter is accepted', () => {
    expect(checkClient(internals('postgresql', ADAPTER))).toBe(ADAPTER);
    const off = new PrismaPg({ connectionString: SECRET, query_timeout: 0 });
    expect(checkClient(internals('postgresql', off))).toBe(off);
  });
});

describe('where the extension is applied', () => {
  // Nothing here connects to anything.
  const redis = new Redis({ lazyConnect: true });
  const plain = new PrismaClient({ adapter: ADAPTER });
  const apply = (options: Partial<FencedLockOptions>) => plain.$extends(fencedLock({ redis, ...options }));

  test('a fence field that no model has is refused: it would leave all of them unfenced', () => {
    const { option, message } = refusal(() => apply({ fenceField: 'fense' }));
    expect(option).toBe('fenceField');
    expect(message).toContain('fense, which no model has');
  });

  const withSchema = (change: (schema: string) => string) => {
    const changed = new PrismaClient({ adapter: ADAPTER });
    const { _engineConfig } = changed as unknown as { _engineConfig: { inlineSchema: string } };
    _engineConfig.inlineSchema = change(_engineConfig.inlineSchema);
    return (options: Partial<FencedLockOptions> = {}) => changed.$extends(fencedLock({ redis, ...options }));
  };
  const asFence =
    (field: string, before = '') =>
    (schema: string) =>
      schema.replace(/(model Stock \{[^}]*?)(\n\s*fence\s+)BigInt[^\n]*/, `$1${before}$2${field}`);

  test.each([
    ['BigInt?', ''],
    ['BigInt[]', ''],
    // A brace that ends no model.
    ['BigInt? @default(0)', '\n  meta Json @default("{}")'],
    ['BigInt? @default(0)', '\n  meta String @default("a \\" // }")'],
  ])('a fence of type %s is refused, for writes would pass over rows without one, behind %j', (type, before) => {
    const { option, message } = refusal(withSchema(asFence(type, before)));
    expect(option).toBe('Stock.fence');
    expect(message).toContain('make it `fence BigInt @default(0)`');
    expect(withSchema(asFence('BigInt @default(0)', before))).not.toThrow();
  });

  test('a field of the application that is called like a fence is refused, unless the fenced models are named', () => {
    const apply = withSchema(asFence('BigInt @unique'));
    const { option, message } = refusal(apply);
    expect(option).toBe('Stock.fence');
    expect(message).toContain('may be a field of the application');
    expect(() => apply({ models: [] })).not.toThrow();
  });

  test('a method without its client is refused as that', async () => {
    const { $withLock } = apply({});
    const detached = $withLock as unknown as (key: string, fn: () => void) => Promise<void>;
    await expect(detached('a', () => {})).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'this' });
  });

  test('a model that the schema does not have is refused by its name', () => {
    const { option, message } = refusal(() => apply({ models: ['Stock', 'Stok'] }));
    expect(option).toBe('models');
    expect(message).toContain('Stok, which the schema does not have');
  });

  test('an extension that is not called says how it is', () => {
    const plain = new PrismaClient({ adapter: new PrismaPg({}) });
    const { option, message } = refusal(() => plain.$extends(fencedLock as never));
    expect(option).toBe('options');
    expect(message).toContain('fencedLock({ redis })');
  });

  test('a named model without the fence field is refused, with the line that it needs', () => {
    const { option, message } = refusal(() => apply({ models: ['Stock'], fenceField: 'turn' }));
    expect(option).toBe('models');
    expect(message).toContain('`turn BigInt @default(0)`');
    expect(message).toContain('npx fenced-lock add-fence Stock');
  });

  const fn = () => 1;
  test.each<[string, (prisma: Record<string, (...given: unknown[]) => Promise<unknown>>) => unknown, string, string]>([
    ['fn, key', (prisma) => prisma['$withLock']?.(fn, 'stock:1'), 'not a function', '(key, fn, options)'],
    ['two keys', (prisma) => prisma['$tryWithLock']?.('a', ['b'], fn), 'not a list', '(key, fn, options)'],
    [
      'key, fn, interval',
      (prisma) => prisma['$oncePer']?.('report', fn, 60_000),
      'not the number 60000',
      '(key, interval, fn, options)',
    ],
    ['options, key of a handle', (prisma) => prisma['$lock']?.({}, 'stock:1'), 'not an object', '(key, options)'],
  ])('arguments in another order are told the order: %s', async (_, call, given, order) => {
    const clients = [apply({}), fakeLocks().prisma] as unknown as Parameters<typeof call>[0][];
    for (const prisma of clients) {
      const error = await Promise.resolve(call(prisma)).catch((error: unknown) => error);
      expect(error).toMatchObject({ code: 'INVALID_OPTION' });
      expect((error as Error).message).toContain(`${given}. The arguments are \`${order}\`, in this order.`);
    }
  });
});

describeWithShop('a call', () => {
  const shop = new Shop();

  test('with an option, a key or a function that cannot be rejects, and nothing was sent', async () => {
    const redis = new Redis({ lazyConnect: true });
    const { prisma } = shop.client({ redis });
    const work = async () => 1;
    const state = { keys: ['stock:1'], tokens: ['1'], holders: [randomUUID()], leaseTime: 500 };
    const calls: Array<[option: string, () => Promise<unknown>]> = [
      ['waitTimeout', () => prisma.$withLock('stock:1', work, { waitTimeout: 5 } as never)],
      ['leaseTime', () => prisma.$withLock('stock:1', work, { leaseTime: 99 })],
      ['options', () => prisma.$withLock('stock:1', work, null as never)],
      ['key', () => prisma.$withLock('', work)],
      ['key', () => prisma.$tryWithLock('stock:null', work)],
      ['key', () => prisma.$lock('stock:NaN')],
      ['fn', () => prisma.$withLock('stock:1', 'work' as never)],
      ['waitTime', () => prisma.$tryWithLock('stock:1', work, { waitTime: 5 } as never)],
      ['fn', () => prisma.$tryWithLock('stock:1', undefined as never)],
      ['options', () => prisma.$lock('stock:1', null as never)],
      ['options', () => prisma.$resumeLock(state, null as never)],
      ['leaseTime', () => prisma.$resumeLock(state, { leaseTime: 500 } as never)],
    ];
    for (const [option, call] of calls) {
      await expect(call()).rejects.toMatchObject({ code: 'INVALID_OPTION', option });
    }
    expect(redis.status).toBe('wait');
  });
});
