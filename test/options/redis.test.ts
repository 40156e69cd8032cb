import { type RedisOptions as AnyOptions, Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { InvalidOptionError } from '../../src/base/errors.js';
import type { FencedLockOptions } from '../../src/options/options.js';
import { resolveOptions } from '../../src/options/resolve.js';
import { memoryStore } from '../../src/stores/memory.js';

type RedisOptions = Omit<AnyOptions, 'replyMapping'>;

// Nothing here connects to anything.
let port = 7_000;
const client = () => new Redis({ lazyConnect: true, port: port++ });
const refusal = (options: object) => {
  try {
    resolveOptions(options as FencedLockOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionError);
    return error as InvalidOptionError;
  }
  throw new Error('it was not refused');
};

test('a client in place of the options is told where it belongs', () => {
  expect(refusal(client())).toMatchObject({
    option: 'options',
    message: expect.stringContaining('fencedLock({ redis })'),
  });
});

test('what is no client of ioredis is told what is, and a client of node-redis what it is', () => {
  const isNoClient = 'must be an ioredis client, such as new Redis(url), a list of them, or memoryStore()';
  expect(refusal({ redis: {} }).message).toContain(`\`redis\` ${isNoClient}.`);
  const ofNodeRedis = { duplicate: () => {}, evalSha: () => {} };
  expect(refusal({ redis: ofNodeRedis }).message).toContain(`\`redis\` ${isNoClient}, and is one of node-redis.`);
});

describe('several nodes', () => {
  test.each([1, 5])('%s of them are taken', (count) => {
    const redis = Array.from({ length: count }, client);
    expect(resolveOptions({ redis }).redis).toEqual(redis);
  });

  test('none at all is refused', () => {
    expect(refusal({ redis: [] })).toMatchObject({ option: 'redis', message: expect.stringContaining('at least one') });
  });

  test.each<[what: string, one: RedisOptions, same: RedisOptions]>([
    ['address', { host: 'redis-a', port: 6379 }, { host: 'Redis-A', db: 1 }],
    ['socket', { path: '/run/redis.sock' }, { path: '/run/redis.sock' }],
  ])('the same %s twice is refused: it would have two votes', (_, ...both) => {
    const redis = [...both.map((options) => new Redis({ ...options, lazyConnect: true })), client()];
    const { option, message } = refusal({ redis });
    expect([option, message]).toEqual(['redis', expect.stringMatching(/names the server .*redis.* twice/)]);
  });

  test('several ports of a host are servers, and so are several groups of Sentinel', () => {
    const sentinels = [{ host: 'sentinel', port: 26_379 }];
    const groups = ['one', 'two'].map((name) => new Redis({ name, sentinels, lazyConnect: true }));
    const redis = [client(), client(), ...groups];
    expect(resolveOptions({ redis }).redis).toEqual(redis);
  });
});

test.each([9, 2_001, Number.NaN, '100'])('the interval of looks is not %s', (wrong) => {
  expect(refusal({ redis: client(), wake: 'spin', pollInterval: wrong })).toMatchObject({
    option: 'pollInterval',
    message: expect.stringContaining('must be a number of milliseconds from 10 to 2000'),
  });
});

describe('a memory store', () => {
  test('is taken alone, and hears wake-ups whatever is said of a server', () => {
    const redis = memoryStore();
    expect(resolveOptions({ redis })).toMatchObject({ redis: [], memory: redis, wake: 'pubsub' });
    expect(resolveOptions({ redis, wake: 'poll', pollInterval: 50 })).toMatchObject({ memory: redis, wake: 'pubsub' });
  });

  test('is refused among several nodes', () => {
    expect(refusal({ redis: [client(), memoryStore()] })).toMatchObject({
      option: 'redis',
      message: expect.stringContaining('memory store'),
    });
  });
});
