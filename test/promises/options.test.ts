import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { describe, expect, inject, test } from 'vitest';
import { type FencedLockEvent, type FencedLockOptions, type LockOptions, memoryStore } from '../../src/index.js';
import { namesOf } from '../../src/redis/names.js';
import { eventually } from '../support/eventually.js';
import { redisProxied } from '../support/proxied.js';
import { freePort } from '../support/servers/index.js';
import { atWork, describeWithShop, Shop, type ShopClient, type ShopOptions } from '../support/shop.js';

describeWithShop('each option of docs/options.md does what it says', () => {
  const shop = new Shop();

  /** Somebody of another process has the key until `free`. */
  async function held(options: ShopOptions = {}) {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client(options);
    const working = await atWork(prisma, key);
    const free = async () => {
      working.goOn();
      await working.held;
    };
    return { id, key, prisma, free };
  }

  // An option without its case does not compile.
  const OF_A_CALL: { readonly [Name in keyof LockOptions]-?: (prisma: ShopClient, key: string) => Promise<unknown> } = {
    waitTime: async (prisma) => {
      const { key, free } = await held();
      const call = prisma.$withLock(key, () => 'in', { waitTime: 50 });
      await expect(call).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', message: expect.stringContaining('50 ms') });
      await free();
    },
    leaseTime: async (prisma, key) => {
      await using _ = await prisma.$lock(key, { leaseTime: 60_000 });
      const { expiresIn } = await prisma.$locks.inspect(key);
      expect(expiresIn).toBeGreaterThan(30_000);
      expect(expiresIn).toBeLessThanOrEqual(60_000);
    },
    renew: async (prisma, key) => {
      const untilLost = (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise((resolve) => signal.addEventListener('abort', resolve));
      const call = prisma.$withLock(key, untilLost, { leaseTime: 200, renew: false });
      await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    },
    timeout: async (prisma, key) => {
      const call = prisma.$withLock(key, () => new Promise(() => {}), { timeout: 100 });
      const message = expect.stringContaining(
        'within its timeout of 100 ms. Make the work shorter, or raise `timeout`',
      );
      await expect(call).rejects.toMatchObject({ reason: 'timeout', message });
    },
    signal: async (prisma) => {
      const { key, free } = await held();
      const abort = new AbortController();
      const call = prisma.$withLock(key, () => 'in', { signal: abort.signal });
      abort.abort('closing time');
      expect(await call.catch((error: unknown) => error)).toBe('closing time');
      await free();
    },
    reentry: async (prisma, key) => {
      expect(await prisma.$withLock(key, () => prisma.$withLock(key, () => 'joined'))).toBe('joined');
      const call = prisma.$withLock(key, () => prisma.$withLock(key, () => 'in', { reentry: 'throw' }));
      await expect(call).rejects.toMatchObject({ code: 'REENTRY', key });
    },
    nested: async (prisma, key) => {
      const inner = (options: LockOptions) =>
        prisma.$withLock(key, () => prisma.$withLock(`${key} inner`, () => 'in', options));
      await expect(inner({})).rejects.toMatchObject({ code: 'NESTED' });
      expect(await inner({ nested: 'allow' })).toBe('in');
    },
    retries: async (prisma, key) => {
      const tokens: bigint[] = [];
      await prisma.$withLock(
        key,
        async (tx, { token }) => {
          tokens.push(token);
          if (tokens.length < 3) await tx.$executeRaw`DO $$ BEGIN RAISE 'x' USING ERRCODE = '40001'; END $$`;
        },
        { retries: 2 },
      );
      expect(new Set(tokens).size).toBe(3);
    },
    hookErrors: async (prisma, key) => {
      const sell = (options: LockOptions) =>
        prisma.$withLock(key, (_, lock) => lock.afterCommit(() => Promise.reject(new Error('no mail'))), options);
      await sell({});
      await expect(sell({ hookErrors: 'throw' })).rejects.toMatchObject({ code: 'HOOK_FAILED' });
    },
    isolationLevel: async (prisma, key) => {
      const shown = (tx: Pick<ShopClient, '$queryRaw'>) => tx.$queryRaw`SHOW transaction_isolation`;
      expect(await prisma.$withLock(key, shown, { isolationLevel: 'RepeatableRead' })).toEqual([
        { transaction_isolation: 'repeatable read' },
      ]);
    },
    maxWait: async () => {
      const { prisma, key, free } = await held({ pool: { max: 1 } });
      await expect(prisma.$withLock(`${key} b`, () => 'in', { maxWait: 100 })).rejects.toMatchObject({ code: 'P2028' });
      await free();
    },
  };

  describe('of a call', () => {
    test.each(Object.entries(OF_A_CALL))('%s', async (_, shows) => {
      await shows(shop.client().prisma, (await shop.product(10)).key);
    });
  });

  const OF_THE_CLIENT: { readonly [Name in keyof FencedLockOptions]-?: (key: string, id: number) => Promise<unknown> } =
    {
      redis: async (key) => {
        const { prisma } = shop.client({ redis: memoryStore() });
        expect(await prisma.$withLock(key, () => 'in')).toBe('in');
        const one = shop.client({ redis: [shop.redis()] }).prisma;
        expect(await one.$withLock(key, () => 'in')).toBe('in');
      },
      defaults: async () => {
        const { key, free } = await held();
        const { prisma } = shop.client({ defaults: { waitTime: 50 } });
        await expect(prisma.$withLock(key, () => 'in')).rejects.toThrow('50 ms');
        await free();
      },
      name: async () => {
        const { key, prisma, free } = await held({ name: 'till 7' });
        expect(await prisma.$locks.inspect(key)).toMatchObject({ process: 'till 7' });
        const call = shop.client().prisma.$withLock(key, () => 'in', { waitTime: 50 });
        await expect(call).rejects.toMatchObject({ holder: 'till 7' });
        await free();
      },
      keyPrefix: async () => {
        const keyPrefix = `${randomUUID()}:`;
        const { key, free } = await held({ keyPrefix });
        expect(await shop.redis().keys(`*${key}*`)).toEqual([namesOf(keyPrefix, key).lease]);
        await free();
      },
      fenceField: async () => {
        expect(() => shop.client({ fenceField: 'version' })).toThrow('no model has');
      },
      models: async (key, id) => {
        const write = (models: readonly string[]) =>
          shop.client({ models }).prisma.$withLock(key, async (tx, { token }) => {
            await tx.stock.update({ where: { id }, data: { quantity: 1 } });
            return token;
          });
        await write([]);
        expect((await shop.row(id))?.fence).toBe(0n);
        expect(await write(['Stock'])).toBe((await shop.row(id))?.fence);
      },
      commandTimeout: async (key) => {
        const { prisma, proxy, events } = await redisProxied(shop, { commandTimeout: 100 });
        await prisma.$withLock(key, () => {});
        proxy.silence();
        const call = prisma.$withLock(`${key} b`, () => 'in');
        await eventually('its look has failed', async () => events.some(({ type }) => type === 'look-failed'));
        proxy.resume();
        expect(await call).toBe('in');
      },
      onRedisUnavailable: async (key) => {
        const redis = shop.redis();
        redis.disconnect();
        Object.assign(redis.options, { port: await freePort() });
        const { prisma, events } = shop.client({ redis, onRedisUnavailable: 'postgres' });
        expect(await prisma.$withLock(key, () => 'in')).toBe('in');
        expect(events.map(({ type }) => type)).toContain('redis-passed-by');
      },
      unsetKeyParts: async (key) => {
        const unset = `${key}:undefined`;
        await expect(shop.client().prisma.$withLock(unset, () => 'in')).rejects.toMatchObject({ option: 'key' });
        expect(await shop.client({ unsetKeyParts: 'allow' }).prisma.$withLock(unset, () => 'in')).toBe('in');
      },
      fairness: async () => {
        const { key, free } = await held();
        const clients = [0, 1].map(() => shop.client({ fairness: 'strict' }).prisma) as [ShopClient, ShopClient];
        const asked: Promise<bigint>[] = [];
        for (const process of [0, 0, 1, 0, 1, 1] as const) {
          asked.push(clients[process].$withLock(key, (_, { token }) => token));
          await shop.queued(key, asked.length);
        }
        await free();
        const tokens = await Promise.all(asked);
        expect(tokens).toEqual(tokens.toSorted((one, other) => (one < other ? -1 : 1)));
      },
      passOnAfter: async () => {
        const { key, free } = await held();
        const order: number[] = [];
        const turns = [0, 1].flatMap((process) => {
          const { prisma } = shop.client({ passOnAfter: 0 });
          return Array.from({ length: 4 }, () => prisma.$withLock(key, () => order.push(process)));
        });
        await shop.queued(key, 2);
        await free();
        await Promise.all(turns);
        const [first, second] = order;
        expect(order).toEqual(Array.from({ length: 4 }, () => [first, second]).flat());
      },
      wake: async () => {
        const { key, free } = await held({ wake: 'poll' });
        const call = shop.client({ wake: 'poll' }).prisma.$withLock(key, () => 'in');
        await shop.queued(key, 1);
        expect(await shop.redis().pubsub('CHANNELS', `*${key}*`)).toEqual([]);
        await free();
        expect(await call).toBe('in');
      },
      pollInterval: async () => {
        const often = { wake: 'spin', pollInterval: 1_000 } as const;
        const { key, free } = await held(often);
        const call = shop.client(often).prisma.$withLock(key, () => performance.now());
        await shop.queued(key, 1);
        await free();
        const released = performance.now();
        // It has just looked, and by the default it would look again after 200 ms.
        expect((await call) - released).toBeGreaterThan(300);
        expect(() => shop.client({ pollInterval: 10 })).toThrow("without `wake: 'poll'`");
      },
      rescue: async (key) => {
        const application_name = `rescue ${key}`.slice(0, 60);
        const rescue = new PrismaPg({ connectionString: inject('postgres').app, application_name });
        const { prisma } = shop.client({ rescue });
        await prisma.$locks.inspect(key);
        const sessions = 'SELECT FROM pg_stat_activity WHERE application_name = $1';
        expect((await shop.admin.query(sessions, [application_name])).rowCount).toBeGreaterThan(0);
      },
      onEvent: async (key) => {
        const heard: FencedLockEvent[] = [];
        const { prisma } = shop.client({ onEvent: (event) => heard.push(event) });
        await prisma.$withLock(key, (_, lock) => lock.afterCommit(() => Promise.reject(new Error('no mail'))));
        expect(heard).toEqual([{ type: 'hook-failed', key, hook: 'afterCommit', error: new Error('no mail') }]);
      },
    };

  describe('of the client', () => {
    test.each(Object.entries(OF_THE_CLIENT))('%s', async (_, shows) => {
      const { id, key } = await shop.product(10);
      await shows(key, id);
    });
  });
});
