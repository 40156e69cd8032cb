import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { RedisStore } from '../../src/redis/store.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { gate, Shop } from '../support/shop.js';
import { PREFIX } from '../waiting/actors.js';
import { everything, FOR_LIST, FOR_PERMITS, RIGHTS, refusedTo } from './rights.js';

/** As in src/redis/subscriber/subscriber.ts. */
const PING_EVERY = 5_000;

describeWithRedis('a Redis user with the rights of docs/rights.md', (redis) => {
  const { app, admin: owner } = inject('postgres');
  const shop = new Shop(() => ({ postgres: app, admin: owner, redis: redis().url }));
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
  });
  afterAll(() => admin.disconnect());

  async function user(name: string, rights: readonly string[]) {
    await admin.call('ACL', 'SETUSER', name, 'reset', 'on', '>password', ...rights);
    const options = { username: name, password: 'password', maxRetriesPerRequest: 0, commandTimeout: 2_000, db: 3 };
    return () => {
      const client = new Redis(redis().url, options);
      client.on('error', () => {});
      onTestFinished(() => client.disconnect());
      return client;
    };
  }

  /** On a server that has seen no script yet. */
  async function tryAll(connect: () => Redis, listening = 0): Promise<void> {
    await admin.script('FLUSH');
    await everything(
      () => new RedisStore(connect(), { keyPrefix: PREFIX, commandTimeout: 2_000 }, () => {}),
      listening,
    );
  }

  /** A turn that is renewed, waited for, and handed over. */
  async function handsOver(name: string, rights: readonly string[], wake: 'pubsub' | 'poll' | 'spin'): Promise<void> {
    const connect = await user(name, rights);
    const { key } = await shop.product(1);
    const [holder, contender] = [shop.client({ redis: connect(), wake }), shop.client({ redis: connect(), wake })];
    const inside = gate();
    const held = holder.prisma.$withLock(
      key,
      async (_, lock) => {
        inside.open();
        // Longer than the lease: only a renewal keeps it.
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        lock.signal.throwIfAborted();
      },
      { leaseTime: 1_500 },
    );
    await inside.opened;
    const contended = contender.prisma.$withLock(key, () => 'handed over');
    expect((await Promise.all([held, contended]))[1]).toBe('handed over');
    expect(await contender.prisma.$locks.inspect(key)).toMatchObject({ key });
    await Promise.all([holder.prisma.$disconnect(), contender.prisma.$disconnect()]);
    expect([...holder.events, ...contender.events]).toEqual([]);
    expect(await refusedTo(name, admin)).toEqual([]);
  }

  test('locks, renews, waits and hands over', async () => {
    await handsOver('all', RIGHTS, 'pubsub');
  });

  test.each(['poll', 'spin'] as const)('does so without any right of pub/sub, by looking: %s', async (wake) => {
    const less = RIGHTS.filter((right) => !/publish|pubsub|subscribe|^&/.test(right));
    expect(less.length).toBe(RIGHTS.length - 5);
    await handsOver(`silent-${wake}`, less, wake);
  });

  test('who may not subscribe and has no listener of events is warned once, however many calls wait', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const connect = await user(
      'without-channels',
      RIGHTS.filter((right) => !right.startsWith('&')),
    );
    const { key } = await shop.product(1);
    const { prisma } = shop.client({ redis: connect(), onEvent: undefined });
    const holder = await shop.client({ redis: connect() }).prisma.$lock(key);
    const waiting = Array.from({ length: 2 }, () => prisma.$withLock(key, () => 'had'));
    await vi.waitFor(() => expect(warned).toHaveBeenCalled());
    await holder.release();
    expect(await Promise.all(waiting)).toEqual(['had', 'had']);
    expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/^Redis refuses wake-ups: NOPERM.*'poll'/), {
      code: 'FENCED_LOCK_REDIS',
    });
  });

  test('is refused nothing', async () => {
    expect(RIGHTS.length).toBeGreaterThan(20);
    const name = `everything-${randomUUID()}`;
    await tryAll(await user(name, [...RIGHTS, ...FOR_LIST]), PING_EVERY + 200);
    expect(await refusedTo(name, admin)).toEqual([]);
  });

  test('works with permits by the rights for those', async () => {
    expect(FOR_PERMITS.length).toBeGreaterThan(3);
    const connect = await user('permits', [...RIGHTS, ...FOR_LIST, ...FOR_PERMITS]);
    const { key } = await shop.product(1);
    const [holder, contender] = [shop.client({ redis: connect() }).prisma, shop.client({ redis: connect() }).prisma];
    await admin.script('FLUSH');
    const handle = await holder.$permit(key, { permits: 1 });
    const next = contender.$withPermit(key, { permits: 1 }, (_, { permit }) => permit);
    expect((await holder.$locks.list()).some((state) => state.key.startsWith(key))).toBe(true);
    await handle.release();
    expect(await next).toBe(0);
    expect(await refusedTo('permits', admin)).toEqual([]);
  });

  // Everybody may say HELLO, from Redis 7 on; `resetchannels` takes away what there is by default before it.
  test.each([...RIGHTS, ...FOR_LIST].filter((right) => !['+hello', 'resetchannels'].includes(right)))(
    'and needs %s',
    async (right) => {
      const name = `less-${randomUUID()}`;
      const less = [...RIGHTS, ...FOR_LIST].filter((each) => each !== right);
      await tryAll(await user(name, less), right === '+ping' ? PING_EVERY + 200 : 0);
      // Before Redis 7 a subcommand is refused by the name of its command.
      const names = [right.slice(1), right.slice(1).split('|')[0]];
      const object = right.startsWith('+') ? expect.toBeOneOf(names) : expect.stringContaining(PREFIX);
      expect(await refusedTo(name, admin)).toContainEqual(object);
    },
  );
});
