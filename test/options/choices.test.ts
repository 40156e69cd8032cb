import { describe, expect, test } from 'vitest';
import { InvalidOptionError } from '../../src/base/errors.js';
import type { FencedLockOptions, LockOptions } from '../../src/options/options.js';
import { checkWork, resolveLockOptions, resolveTransactionOptions } from '../../src/options/validate-call.js';
import { resolveOptions } from '../../src/options/validate-options.js';

const client = { status: 'ready', duplicate: () => {}, evalsha: () => {} };
const extension = (options: object) => resolveOptions({ redis: client, ...options } as FencedLockOptions);
const { defaults } = extension({});
const call = (options: object) => resolveLockOptions(options as LockOptions, defaults);

const OF_A_CALL = { reentry: ['join', 'throw'], nested: ['throw', 'allow'] };
const OF_THE_EXTENSION = {
  fairness: ['process', 'strict'],
  onRedisUnavailable: ['throw', 'postgres'],
  wake: ['pubsub', 'poll', 'spin'],
};
const NO_CHOICE = ['', 'JOIN', 'constructor', 0, true, {}, ['throw'], null, () => {}];

describe('the function', () => {
  test('cannot be a generator, which would run nothing', () => {
    for (const generator of [function* () {}, async function* () {}]) {
      expect(() => checkWork(generator, '$withLock')).toThrow('`fn` must be a plain or an async function');
    }
    for (const good of [() => {}, async () => {}, function named() {}]) checkWork(good, '$withLock');
  });
});

describe('a choice', () => {
  for (const [of, options, resolve] of [
    ['a call', OF_A_CALL, call],
    ['the extension', OF_THE_EXTENSION, extension],
  ] as const) {
    for (const [name, choices] of Object.entries(options)) {
      test.each(choices)(`${name} of ${of} can be %s`, (choice) => {
        expect(resolve({ [name]: choice })).toMatchObject({ [name]: choice });
      });

      test.each(NO_CHOICE.filter((value) => value !== null).map((value) => [value]))(
        `${name} of ${of} cannot be %o, and is told the choices`,
        (value) => {
          expect(() => resolve({ [name]: value })).toThrow(InvalidOptionError);
          expect(() => resolve({ [name]: value })).toThrow(
            `\`${name}\` must be ${choices.map((each) => `'${each}'`).join(' or ')}`,
          );
        },
      );
    }
  }
});

describe('the number of retries', () => {
  test('is a whole number within its bounds', () => {
    for (const good of [0, 1, 100]) expect(call({ retries: good })).toMatchObject({ retries: good });
    for (const bad of [-1, 0.5, 101, Number.NaN, Number.POSITIVE_INFINITY, '1', 1n]) {
      expect(() => call({ retries: bad } as object)).toThrow('`retries` must be a whole number from 0 to 100, not ');
    }
  });
});

describe('the time after which a key passes on', () => {
  test('is from 0 ms on', () => {
    expect(extension({})).toMatchObject({ passOnAfter: 50 });
    for (const good of [0, 1, 60_000]) expect(extension({ passOnAfter: good })).toMatchObject({ passOnAfter: good });
    for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY, '1', 1n]) {
      expect(() => extension({ passOnAfter: bad })).toThrow(
        '`passOnAfter` must be a number of milliseconds from 0 to ',
      );
    }
  });
});

describe("a handle's transaction", () => {
  const transaction = (options: object) => resolveTransactionOptions(options, defaults);

  test('takes what concerns a transaction', () => {
    const options = {
      waitTime: 1,
      timeout: 2,
      retries: 3,
      nested: 'allow',
      hookErrors: 'throw',
      isolationLevel: 'Serializable',
      maxWait: 4,
    };
    expect(transaction(options)).toMatchObject(options);
  });

  test('a function in place of the options is named as one', () => {
    expect(() => transaction((() => {}) as never)).toThrow('is a function, which this call does not take');
  });

  test.each(['leaseTime', 'renew', 'reentry'])('takes no %s, which is that of the handle', (name) => {
    expect(() => transaction({ [name]: 'join' })).toThrow(`\`${name}\` is not an option here`);
  });
});
