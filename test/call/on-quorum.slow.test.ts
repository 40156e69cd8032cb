import type { Redis } from 'ioredis';
import { afterEach, expect, inject, test } from 'vitest';
import type { FencedLockOptions } from '../../src/index.js';
import { untilHolds } from '../support/eventually.js';
import { connectTo } from '../support/redis-site.js';
import { type RedisServer, startQuorum } from '../support/servers/index.js';
import { Shop, sale } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';

describeWithGroup(
  'calls with five independent nodes',
  () => startQuorum(5),
  (group) => {
    const { app, admin } = inject('postgres');
    const shop = new Shop(() => ({ postgres: app, admin, redis: group().nodes[0]?.url ?? '' }));
    const hurt = new Set<RedisServer>();
    afterEach(async () => {
      for (const node of hurt) {
        node.thaw();
        await node.start().catch(() => {});
      }
      hurt.clear();
    });

    async function kill(...indexes: number[]): Promise<void> {
      for (const index of indexes) {
        const node = group().nodes[index] as RedisServer;
        hurt.add(node);
        await node.killHard();
      }
    }

    async function client(options: Partial<FencedLockOptions> = {}) {
      const { redis, close } = connectTo(group().site);
      shop.closeLater(close);
      const up = (redis as Redis[]).filter((_, index) => !hurt.has(group().nodes[index] as RedisServer));
      await Promise.all(up.map((node) => node.ping()));
      return shop.client({ ...options, redis: redis as Redis[] });
    }

    /** Two clients sell, each in turn, and no sale is lost. */
    async function sellAll(options: Partial<FencedLockOptions> = {}) {
      const clients = [await client(options), await client(options)] as const;
      const { id, key } = await shop.product(20);
      const tokens: bigint[] = [];
      const sell = ({ prisma }: (typeof clients)[number]) =>
        prisma.$withLock(key, async (tx, { token }) => {
          await sale(id)(tx);
          tokens.push(token);
        });
      await Promise.all(Array.from({ length: 20 }, (_, index) => sell(clients[index % 2 ? 1 : 0])));
      expect((await shop.row(id))?.quantity).toBe(0);
      expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
      return clients[0];
    }

    test('two of them dead: all goes on, and the client tells which', async () => {
      await sellAll();
      const { prisma, events } = await client();
      await kill(1, 3);
      await sellAll({ wake: 'poll' });
      const { id, key } = await shop.product(2);
      await prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 1 } }), {
        leaseTime: 5_000,
      });
      const lock = await prisma.$lock(key, { leaseTime: 5_000 });
      await lock.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 0 } }));
      expect((await prisma.$locks.inspect(key)).token).toBe(lock.token);
      expect(await prisma.$tryWithLock(key, () => {})).toEqual({ acquired: false });
      await lock.release();
      expect((await shop.row(id))?.quantity).toBe(0);
      for (const node of [1, 3]) {
        const down = expect.objectContaining({ type: 'node-down', node });
        await untilHolds(() => expect(events).toContainEqual(down));
      }
    });

    test('three of them dead: refused within the wait time, and nothing is done', async () => {
      const { prisma } = await client();
      const { id, key } = await shop.product(10);
      await kill(0, 2, 4);
      const since = performance.now();
      const call = prisma.$withLock(key, () => 'in', { waitTime: 500 });
      await expect(call).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key });
      await expect(prisma.$tryWithLock(key, () => 'in')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      expect(performance.now() - since).toBeLessThan(5_000);
      expect((await shop.row(id))?.quantity).toBe(10);
    });
  },
);
