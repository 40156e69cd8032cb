import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { RedisStore } from '../../src/redis/store.js';
import { PREFIX, someKey } from '../lease/actors.js';
import { claimOf } from '../lease/claims.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { gate, Shop } from '../support/shop.js';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
/** The rights that the README names, after `on >password`, and that for `list`. */
const RIGHTS = (/^ACL SETUSER shop on >password (.+)$/m.exec(README)?.[1] ?? '').split(' ');
const FOR_LIST = /^`(\+scan)` beside these/m.exec(README)?.[1] ?? '';
/** As in src/redis/subscriber.ts. */
const PING_EVERY = 5_000;

describeWithRedis('a Redis user with the rights of the README', (redis) => {
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

  /** What the server has refused to this user: a command, a key or a channel. */
  async function refused(name: string): Promise<string[]> {
    const entries = (await admin.call('ACL', 'LOG')) as string[][];
    const fields = entries.map((entry) => new Map(entry.map((field, index) => [field, entry[index + 1]])));
    const objects = fields.filter((each) => each.get('username') === name).map((each) => String(each.get('object')));
    // CLIENT SETINFO, by which ioredis tells its version to servers that know it. It does not mind.
    return objects.filter((object) => !/^client(\|setinfo)?$/.test(object));
  }

  /** Everything that a store does, of which the server may refuse anything. */
  async function everything(connect: () => Redis, listening = 0): Promise<void> {
    await admin.script('FLUSH');
    const make = () => new RedisStore(connect(), { keyPrefix: PREFIX, commandTimeout: 2_000 }, () => {});
    const [holder, contender] = [make(), make()];
    const claim = claimOf(someKey());
    const waiting = claimOf(claim.key);
    const refusal = (): undefined => {};
    await holder.acquire(claim).catch(refusal);
    const watch = await contender.watch(claim.key, () => {}).catch(refusal);
    await contender.acquire(waiting, { enter: 60_000 }).catch(refusal);
    await new Promise((resolve) => setTimeout(resolve, listening));
    await holder.extend([claim]);
    await holder.yield(claim).catch(refusal);
    await contender.acquire(waiting).catch(refusal);
    await contender.transfer(waiting, 'the successor').catch(refusal);
    await contender.inspect(claim.key).catch(refusal);
    await holder.list().catch(refusal);
    await holder.force(claim.key, 'the successor').catch(refusal);
    await holder.release(claim).catch(refusal);
    watch?.close();
    // Behind the unsubscribe on the same connection.
    await contender.watch(claim.key, () => {}).catch(refusal);
    await Promise.all([holder.close(), contender.close()]);
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
        await new Promise((resolve) => setTimeout(resolve, 300));
        lock.signal.throwIfAborted();
      },
      { leaseTime: 200 },
    );
    await inside.opened;
    const contended = contender.prisma.$withLock(key, () => 'handed over');
    expect((await Promise.all([held, contended]))[1]).toBe('handed over');
    expect(await contender.prisma.$locks.inspect(key)).toMatchObject({ key });
    await Promise.all([holder.prisma.$disconnect(), contender.prisma.$disconnect()]);
    expect([...holder.events, ...contender.events]).toEqual([]);
    expect(await refused(name)).toEqual([]);
  }

  test('locks, renews, waits and hands over', async () => {
    await handsOver('all', RIGHTS, 'pubsub');
  });

  test.each(['poll', 'spin'] as const)('does so without any right of pub/sub, by looking: %s', async (wake) => {
    const less = RIGHTS.filter((right) => !/publish|pubsub|subscribe|^&/.test(right));
    expect(less.length).toBe(RIGHTS.length - 5);
    await handsOver(`silent-${wake}`, less, wake);
  });

  test('is refused nothing', async () => {
    expect(RIGHTS.length).toBeGreaterThan(20);
    const name = `everything-${randomUUID()}`;
    await everything(await user(name, [...RIGHTS, FOR_LIST]), PING_EVERY + 200);
    expect(await refused(name)).toEqual([]);
  });

  // Everybody may say HELLO, from Redis 7 on; `resetchannels` takes away what there is by default before it.
  test.each([...RIGHTS, FOR_LIST].filter((right) => !['+hello', 'resetchannels'].includes(right)))(
    'and needs %s',
    async (right) => {
      const name = `less-${randomUUID()}`;
      const less = [...RIGHTS, FOR_LIST].filter((each) => each !== right);
      await everything(await user(name, less), right === '+ping' ? PING_EVERY + 200 : 0);
      // Before Redis 7 a subcommand is refused by the name of its command.
      const names = [right.slice(1), right.slice(1).split('|')[0]];
      const object = right.startsWith('+') ? expect.toBeOneOf(names) : expect.stringContaining(PREFIX);
      expect(await refused(name)).toContainEqual(object);
    },
  );
});
