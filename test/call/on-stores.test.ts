import { Redis } from 'ioredis-5';
import { expect, inject, test } from 'vitest';
import { type Lock, type LockTx, memoryStore } from '../../src/index.js';
import { atWork, describeWithShop, gate, Shop, type ShopClient, sale } from '../support/shop.js';

describeWithShop('locks with a memory store', () => {
  const shop = new Shop();

  test('are serial among the clients of one store, in the order of their tokens', async () => {
    const memory = memoryStore();
    const clients = [0, 1, 2].map(() => shop.client({ redis: memory }).prisma);
    const product = await shop.product(60);
    const turn = (tx: LockTx<ShopClient>, { token }: Lock) => sale(product.id)(tx).then(() => token);
    const tokens = await Promise.all(
      Array.from({ length: 60 }, (_, n) => clients[n % 3]?.$withLock(product.key, turn)),
    );
    expect(new Set(tokens).size).toBe(60);
    expect((await shop.row(product.id))?.quantity).toBe(0);
    expect(await clients[0]?.$locks.list()).toEqual([]);
  });

  test('of two stores, as two processes would have, lose no update, and neither side ends the other', async () => {
    const product = await shop.product(40);
    const clients = [0, 1].map(() => shop.client({ redis: memoryStore() }));
    const inside = gate();
    // Longer than the pause after which a former holder of the own room would be ended.
    const slowly = () => {
      inside.open();
      return new Promise((resolve) => setTimeout(resolve, 1_500));
    };
    const slow = clients[0]?.prisma.$withLock(product.key, sale(product.id, slowly));
    await inside.opened;
    const rest = Array.from({ length: 39 }, (_, n) => clients[n % 2]?.prisma.$withLock(product.key, sale(product.id)));
    await Promise.all([slow, ...rest]);
    expect((await shop.row(product.id))?.quantity).toBe(0);
    expect(clients.flatMap(({ events }) => events.filter(({ type }) => type === 'backend-ended'))).toEqual([]);
  });
});

describeWithShop('with ioredis 5', () => {
  const shop = new Shop();
  const client = () => {
    const redis = new Redis(inject('redis').url as string);
    shop.closeLater(() => redis.disconnect());
    return shop.client({ redis });
  };

  test('a call waits, is woken, and works', async () => {
    const { id, key } = await shop.product(10);
    const [holder, contender] = [client(), client()];
    // Long enough to be waited for, short enough to be renewed meanwhile.
    const { held, goOn } = await atWork(holder.prisma, key, sale(id), { leaseTime: 1_000 });
    const contended = contender.prisma.$withLock(key, sale(id));
    // Longer than the lease: only a renewal keeps it.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    goOn();
    await held;
    expect(await contended).toBe(8);
    expect([...holder.events, ...contender.events]).toEqual([]);
  });
});
