import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FencedLockError } from '../../src/base/errors.js';
import { checkKeys, checkState, checkWork, resolveLockOptions } from '../../src/options/validate-call.js';
import { resolveOptions } from '../../src/options/validate-options.js';
import { seed } from './seed.js';

/** Of each. */
const RUNS = 3_500;
const client = { status: 'ready', duplicate: () => {}, evalsha: () => {} };

const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true });
/** Mostly what may do. */
const mostly = <T>(good: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: good }, { weight: 1, arbitrary: anything as fc.Arbitrary<unknown> });
const some = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.record(fields, { requiredKeys: [] }) },
    { weight: 1, arbitrary: fc.record({ ...fields, other: anything }, { requiredKeys: [] }) },
    { weight: 1, arbitrary: anything },
  );

const time = mostly(fc.oneof(fc.integer({ min: 100, max: 60_000 }), fc.double({ min: 0, max: 2 ** 32 }), fc.double()));
const lockOptions = some({
  waitTime: time,
  leaseTime: time,
  timeout: time,
  maxWait: time,
  renew: mostly(fc.boolean()),
  reentry: mostly(fc.constantFrom('join', 'throw')),
  nested: mostly(fc.constantFrom('throw', 'allow')),
  retries: mostly(fc.nat(100)),
  hookErrors: mostly(fc.constantFrom('event', 'throw')),
  signal: mostly(fc.constant(new AbortController().signal)),
  isolationLevel: mostly(fc.constantFrom('ReadCommitted', 'Serializable')),
});
const options = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: fc.constant({ redis: client }) }, { weight: 1, arbitrary: fc.object() }),
    some({
      rescue: mostly(fc.constant({ connect: async () => {} })),
      keyPrefix: mostly(fc.string({ minLength: 1 })),
      fenceField: mostly(fc.string()),
      models: mostly(fc.array(fc.string())),
      commandTimeout: time,
      fairness: mostly(fc.constantFrom('process', 'strict')),
      passOnAfter: time,
      onRedisUnavailable: mostly(fc.constantFrom('throw', 'postgres')),
      wake: mostly(fc.constantFrom('pubsub', 'poll', 'spin')),
      pollInterval: mostly(fc.integer({ min: 10, max: 2_000 })),
      defaults: lockOptions,
      onEvent: mostly(fc.constant(() => {})),
    }),
  )
  .map(([redis, more]) => (typeof more === 'object' && more !== null ? { ...redis, ...more } : more));
const key = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 600 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  anything,
);

/** What it gives, or `undefined` if it was refused as it should be. Any other error is the test's. */
function resolved<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    if (error instanceof FencedLockError && error.code === 'INVALID_OPTION') return undefined;
    throw error;
  }
}

describe(`random options and keys (FC_SEED=${seed})`, () => {
  const builtIn = resolveOptions({ redis: client }).defaults;

  test('those of the extension work or are INVALID_OPTION', () => {
    let worked = 0;
    fc.assert(
      fc.property(options, (given) => {
        if (resolved(() => resolveOptions(given as never))) worked++;
      }),
      { seed, numRuns: RUNS },
    );
    expect(worked).toBeGreaterThan(RUNS / 100);
  });

  test('those of a call work, with times that a timer and Redis can take, or are INVALID_OPTION', () => {
    let worked = 0;
    fc.assert(
      fc.property(lockOptions, anything, (given, work) => {
        resolved(() => checkWork(work, '$withLock'));
        const result = resolved(() => resolveLockOptions(given as never, builtIn));
        if (result === undefined) return;
        worked++;
        for (const value of [result.waitTime, result.leaseTime, result.timeout, result.maxWait ?? 0]) {
          expect(Number.isInteger(value) && value >= 0 && value < 2 ** 31).toBe(true);
        }
        expect(result.leaseTime).toBeGreaterThanOrEqual(100);
      }),
      { seed, numRuns: RUNS },
    );
    expect(worked).toBeGreaterThan(RUNS / 100);
  });

  test('lists of keys and states of handles are taken or INVALID_OPTION', () => {
    const list = fc.oneof(fc.array(key, { maxLength: 120 }), key);
    const state = some({ keys: list, tokens: fc.array(anything), holders: fc.array(anything), leaseTime: time });
    fc.assert(
      fc.property(list, state, (keys, given) => {
        const checked = resolved(() => checkKeys(keys));
        if (checked) expect(new Set(checked).size).toBe(checked.length);
        resolved(() => checkState(given));
      }),
      { seed, numRuns: RUNS },
    );
  });
});
