import { createRequire } from 'node:module';
import { Cluster, Redis } from 'ioredis';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { FencedLockError, InvalidOptionError } from '../../src/base/errors.js';
import { checkFunction, checkKey } from '../../src/options/arguments.js';
import type { FencedLockOptions, LockOptions, RedisLike } from '../../src/options/options.js';
import { resolveLockOptions, resolveOptions, resolveTransactionOptions } from '../../src/options/resolve.js';
import { BLANKS } from '../cli/operator.js';
import { describeWithShop } from '../support/shop.js';

const IOREDIS = Number.parseInt(createRequire(import.meta.url)('ioredis/package.json').version, 10);

/** What is given is of the wrong type on purpose: JavaScript has no compiler in the way. */
const wrong = (value: unknown) => value as never;

/** The refusal of an option, which must name it, say what to do, and tell no secret. */
function refusal(call: () => unknown): InvalidOptionError {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toBeInstanceOf(FencedLockError);
    const refused = error as InvalidOptionError;
    expect(refused.code).toBe('INVALID_OPTION');
    expect(refused.message).toContain(`\`${refused.option}\``);
    expect(refused.message).toContain('docs/errors.md#invalid_option');
    expect(refused.message).not.toMatch(/s3cret|rediss?:\/\/|postgres(ql)?:\/\//);
    return refused;
  }
  throw new Error('it was not refused');
}

const client: RedisLike = { status: 'ready', duplicate: () => {}, evalsha: () => {} };
const builtIn = resolveOptions({ redis: client }).defaults;
const extension = (options: Partial<FencedLockOptions>) => resolveOptions({ redis: client, ...options });
const call = (options: LockOptions) => resolveLockOptions(options, builtIn);

describe('a key', () => {
  test.each([
    ['one character', 'k'],
    ['512 bytes of four each', '🔒'.repeat(128)],
    ['spaces, braces, newlines', ' {a}\r\n'],
  ])('can be %s', (_, key) => {
    expect(checkKey(key)).toBe(key);
  });

  test.each([
    ['empty', '', 'must not be empty'],
    ['513 bytes in 257 characters', `${'é'.repeat(256)}k`, '512 bytes'],
    ['with a NUL', 'stock\0', 'NUL'],
    ['with a lone high surrogate', 'stock:\ud83d', 'lone surrogate'],
    ['undefined', undefined, 'not undefined'],
    ['null', null, 'must be a string'],
    ['a number', 1, 'not the number 1'],
  ])('cannot be %s', (_, key, says) => {
    const { option, message } = refusal(() => checkKey(key));
    expect(option).toBe('key');
    expect(message).toContain(says);
    expect(message.length).toBeLessThan(300);
  });
});

describe('a time', () => {
  const times = ['waitTime', 'leaseTime', 'timeout', 'maxWait'] as const;
  const never: ReadonlyArray<[what: string, value: unknown]> = [
    ['NaN', Number.NaN],
    ['negative', -1],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['longer than a timer can be', 2 ** 31],
    ['a text', '1000'],
    ['a bigint', 1_000n],
  ];

  for (const name of times) {
    test.each(never)(`${name} cannot be %s, in a call or as its default`, (_, value) => {
      for (const attempt of [() => call({ [name]: value }), () => extension({ defaults: { [name]: value } })]) {
        const { option, message } = refusal(attempt);
        expect(option).toBe(name);
        expect(message).toMatch(
          /a number of milliseconds from \d+ to 2147483647, not (the number |a |an |null|undefined)/,
        );
      }
    });
  }

  test('each has its least and its greatest value', () => {
    expect(call({ waitTime: 0, leaseTime: 100, timeout: 1, maxWait: 1 })).toMatchObject({ waitTime: 0, maxWait: 1 });
    const longest = 2 ** 31 - 1;
    const all = { waitTime: longest, leaseTime: longest, timeout: longest, maxWait: longest };
    expect(call(all)).toMatchObject(all);
    expect(refusal(() => call({ leaseTime: 99 })).message).toContain('from 100 to');
    expect(refusal(() => call({ timeout: 0 })).option).toBe('timeout');
    // Prisma takes 0 for none: "maxWait is required".
    expect(refusal(() => call({ maxWait: 0 })).option).toBe('maxWait');
    expect(refusal(() => extension({ commandTimeout: 0 })).option).toBe('commandTimeout');
  });

  test('fractions are rounded: Redis takes none, and what is left of a time often has them', () => {
    expect(call({ waitTime: 0.4, leaseTime: 100.5, timeout: 33.3, maxWait: 10.7 })).toMatchObject({
      waitTime: 0,
      leaseTime: 101,
      timeout: 33,
      maxWait: 11,
    });
    expect(refusal(() => call({ leaseTime: 99.9 })).option).toBe('leaseTime');
  });
});

const NO_CHOICE = ['', 'JOIN', 'constructor', 0, true, {}, ['throw'], () => {}];

describe('an option', () => {
  test('of the client is refused in a call and in `defaults`, and the other way round, with the place where it belongs', () => {
    const message = refusal(() => extension(wrong({ waitTime: 1 }))).message;
    expect(message).toContain(
      '`waitTime` is an option of a call: give it to the call, or write `defaults: { waitTime: … }`',
    );
    for (const attempt of [() => call(wrong({ name: 1 })), () => extension({ defaults: wrong({ name: 1 }) })]) {
      expect(refusal(attempt).message).toContain('`name` is an option of the client, and not of a call');
    }
  });

  test.each([
    ['leastime', 'leaseTime'],
    ['retry', 'retries'],
    ['lease', 'leaseTime'],
  ])('%s of a call is told from %s', (name, meant) => {
    expect(refusal(() => call(wrong({ [name]: 1 }))).message).toContain(
      `not an option here. Did you mean ${meant}? There are`,
    );
    const ofTheClient = refusal(() => extension(wrong({ [name]: 1 }))).message;
    expect(ofTheClient).toContain(`Did you mean ${meant}? \`${meant}\` is an option of a call`);
  });

  test('is looked for in an object', () => {
    for (const value of [null, [], 'redis://user:s3cret@host', 5, true]) {
      expect(refusal(() => call(wrong(value))).option).toBe('options');
      expect(refusal(() => call(wrong(value))).message).toContain('There are waitTime,');
      expect(refusal(() => resolveOptions(wrong(value))).option).toBe('options');
    }
    expect(refusal(() => resolveOptions(wrong(undefined))).option).toBe('options');
    expect(refusal(() => extension({ defaults: wrong('fast') })).option).toBe('options');
  });

  test.each([
    ['keyPrefix', ['', 'a\0b', 5, {}]],
    ['name', ['', ' ', 'a ', 'a\nb', ...BLANKS.map((blank) => `admin${blank}`), 'ü'.repeat(51), 5]],
    ['fenceField', ['', 5, []]],
    ['fairness', NO_CHOICE],
    ['onRedisUnavailable', NO_CHOICE],
    ['wake', NO_CHOICE],
    ['passOnAfter', [-1, Number.NaN, '1', 1n]],
    ['commandTimeout', [0, -1, Number.NaN, '1']],
    // Where nobody looks, any value is refused.
    ['pollInterval', [9, 200, 2_001, '100']],
    ['models', ['Stock', [1], {}, [undefined]]],
    ['onEvent', ['log', {}, 5]],
    ['rescue', [{}, 'postgresql://user:s3cret@host', { connect: true }]],
    ['redis', [undefined, null, 'redis://user:s3cret@host', {}, { evalsha: () => {} }, new Map()]],
  ] as ReadonlyArray<[keyof FencedLockOptions, unknown[]]>)('%s of the extension is checked', (name, values) => {
    for (const value of values) expect(refusal(() => extension({ [name]: value })).option).toBe(name);
  });

  test.each([
    ['renew', [0, 'yes', {}]],
    ['signal', [true, {}, new AbortController(), new EventTarget()]],
    ['isolationLevel', ['', 'Snapshot', 'READ COMMITTED', 5]],
    ['reentry', NO_CHOICE],
    ['nested', NO_CHOICE],
    ['hookErrors', NO_CHOICE],
    ['retries', [-1, 0.5, 101, Number.NaN, Number.POSITIVE_INFINITY, '1', 1n]],
  ] as ReadonlyArray<[keyof LockOptions, unknown[]]>)('%s of a call is checked', (name, values) => {
    for (const value of values) {
      expect(refusal(() => call({ [name]: value })).option).toBe(name);
      expect(refusal(() => extension({ defaults: { [name]: value } })).option).toBe(name);
    }
  });

  test.each(['leaseTime', 'renew', 'reentry'])('%s is that of the handle, and not of a transaction of it', (name) => {
    const message = refusal(() => resolveTransactionOptions({ [name]: 'join' } as never, builtIn)).message;
    expect(message).toContain(`\`${name}\` is not an option here`);
    const all = { waitTime: 1, timeout: 2, retries: 3, nested: 'allow', hookErrors: 'throw', maxWait: 4 } as const;
    expect(resolveTransactionOptions(all, builtIn)).toMatchObject(all);
  });

  test('fn must be a function, and no generator, which would run nothing', () => {
    for (const work of [undefined, null, 'stock', {}, Promise.resolve()]) {
      expect(refusal(() => checkFunction(work, '$withLock')).message).toContain('must be a function');
    }
    for (const generator of [function* () {}, async function* () {}]) {
      expect(refusal(() => checkFunction(generator, '$withLock')).message).toContain('a plain or an async function');
    }
    for (const good of [() => {}, async () => {}, function named() {}]) checkFunction(good, '$withLock');
  });
});

describeWithShop('the Redis client', () => {
  const clients: Redis[] = [];
  const connect = (protocol: 2 | 3) => {
    const redis = new Redis(inject('redis').url as string, { protocol });
    clients.push(redis);
    return redis;
  };
  afterAll(() => {
    for (const redis of clients) redis.disconnect();
  });

  test('in subscriber mode is refused: it could send no command', async () => {
    const redis = connect(2);
    await redis.subscribe('anything');
    expect(refusal(() => extension({ redis })).message).toContain('subscriber mode');
  });

  // ioredis 6 and later speak it.
  test.skipIf(IOREDIS < 6)('that subscribes in RESP3 can send commands too, and is accepted', async () => {
    const redis = connect(3);
    await redis.subscribe('anything');
    expect(extension({ redis }).redis).toEqual([redis]);
  });

  test.each(['{}', 'app:{}:'])(
    'of a Cluster is refused with the keyPrefix %j: it would spread the names of a key over the slots',
    (keyPrefix) => {
      const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
      const prefixed = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, keyPrefix });
      expect(refusal(() => extension({ redis: cluster, keyPrefix })).message).toContain('keyPrefix');
      expect(refusal(() => extension({ redis: prefixed })).message).toContain('keyPrefix');
      expect(extension({ redis: new Redis({ lazyConnect: true }), keyPrefix }).keyPrefix).toBe(keyPrefix);
      cluster.disconnect();
      prefixed.disconnect();
    },
  );
});
