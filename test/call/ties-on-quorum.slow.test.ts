import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { sleep } from '../../src/base/clock.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { startQuorum } from '../support/servers/index.js';
import { Shop } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';

/** Of each process to the nodes of the other zones, there and back; ms. */
const ROUND_TRIP = 20;
const ROUNDS = 3;

describeWithGroup(
  'three clients that ask three independent nodes at once, each near another one',
  () => startQuorum(3),
  (group) => {
    const { app, admin } = inject('postgres');
    const shop = new Shop(() => ({ postgres: app, admin, redis: group().nodes[0]?.url ?? '' }));

    async function client(zone: number) {
      const nodes = group().nodes.map(async ({ url }, node) => {
        const { hostname: host, port } = new URL(url);
        const proxy = await startFaultProxy({ host, port: Number(port) });
        if (node !== zone) proxy.latency(ROUND_TRIP / 2);
        const redis = new Redis(proxy.url(url));
        shop.closeLater(() => {
          redis.disconnect();
          return proxy.close();
        });
        await redis.ping();
        return redis;
      });
      const { prisma } = shop.client({ redis: await Promise.all(nodes) });
      await prisma.$withLock(`warm:${randomUUID()}`, () => {});
      return prisma;
    }

    test('each come again when they are told to, and one of them runs', async () => {
      const clients = [await client(0), await client(1), await client(2)];
      for (let round = 0; round < ROUNDS; round++) {
        const key = `tie:${randomUUID()}`;
        const due = async (prisma: (typeof clients)[number]): Promise<boolean> => {
          const result = await prisma.$oncePer(key, 3_600_000, () => {});
          if (result.ran || !result.busy) return result.ran;
          await sleep(result.nextIn);
          return await due(prisma);
        };
        const ran = await Promise.all(clients.map(due));
        expect(ran.toSorted()).toEqual([false, false, true]);
      }
    });
  },
);
