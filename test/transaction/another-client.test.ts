import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { InvalidOptionError } from '../../src/index.js';
import type { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('an extension whose $transaction begins on the client that it was made for', () => {
  const shop = new Shop();

  function begunOnAnother(options: { models?: string[] }) {
    const { plain } = shop.client();
    const original = plain.$transaction as (...args: unknown[]) => unknown;
    const extended = plain.$extends({
      client: { $transaction: (...args: unknown[]) => original.apply(plain, args) },
    });
    return shop.extend(extended, options);
  }

  test('is fenced all the same, because its connection is', async () => {
    const prisma = begunOnAnother({ models: [] });
    const { key } = await shop.product(10);
    const [{ token }] = await prisma.$withLock(
      key,
      (tx) => tx.$queryRaw<[{ token: string }]>`SELECT current_setting('fenced_lock.token') AS token`,
    );
    expect(BigInt(token)).toBeGreaterThan(0n);
    const ended = prisma.$withLock(key, (tx) => tx.$executeRawUnsafe('COMMIT'));
    await expect(ended).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
  });

  test('is refused where a fenced model has no guard: its writes would go past their condition', async () => {
    const prisma = begunOnAnother({});
    const { id, key } = await shop.product(10);
    let ran = false;
    const held = prisma.$withLock(key, async (tx) => {
      ran = true;
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    await expect(held).rejects.toMatchObject({ code: 'INVALID_OPTION', option: '$transaction' });
    expect(ran).toBe(false);
    // And it stands in nobody's way.
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
  });

  test('is refused at once where it sends a statement before the function, which would come before the admission', async () => {
    const { plain } = shop.client();
    const tenant = plain.$extends({
      client: {
        $transaction: (work: (tx: unknown) => Promise<unknown>) =>
          plain.$transaction(async (tx) => {
            await tx.$executeRaw`SELECT set_config('app.tenant', '1', true)`;
            return await work(tx);
          }),
      },
    });
    const prisma = shop.extend(tenant, { models: [] });
    const { key } = await shop.product(10);
    await expect(prisma.$withLock(key, () => 'in')).rejects.toMatchObject({
      constructor: InvalidOptionError,
      option: 'transaction',
      message: expect.stringContaining('sends a statement before it calls its function'),
    });
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
  });

  /**
   * A client whose transactions begin on the client of the present tenant. Each tenant's adapter is fenced, by a lock of its
   * own.
   */
  async function routed({ connectedBefore }: { connectedBefore: boolean }) {
    const tenants = new AsyncLocalStorage<string>();
    const clients = new Map<string, PrismaClient>();
    for (const name of ['tenant a', 'tenant b']) {
      const adapter = new PrismaPg({ connectionString: inject('postgres').app, application_name: name });
      const plain = shop.unextended(adapter);
      if (connectedBefore) await plain.$queryRaw`SELECT 1`;
      const own = shop.extend(plain, { models: [] });
      if (connectedBefore) await own.$withLock(randomUUID(), () => {});
      clients.set(name, plain);
    }
    const first = clients.get('tenant a') as PrismaClient;
    const router = first.$extends({
      client: {
        $transaction(...args: unknown[]) {
          const client = clients.get(tenants.getStore() ?? '') as PrismaClient;
          return (client.$transaction as (...given: unknown[]) => unknown).apply(client, args);
        },
      },
    });
    const prisma = shop.extend(router, { models: [] });
    const { key } = await shop.product(10);
    let runs = 0;
    const work = (tenant: string) =>
      tenants.run(tenant, () =>
        prisma.$withLock(key, async (tx) => {
          runs++;
          const [{ name }] = await tx.$queryRaw<[{ name: string }]>`SELECT current_setting('application_name') AS name`;
          return name;
        }),
      );
    return { work, runs: () => runs };
  }

  test('that has another adapter is refused: outcomes would be looked up in another database', async () => {
    const { work, runs } = await routed({ connectedBefore: false });
    expect(await work('tenant a')).toBe('tenant a');
    await expect(work('tenant b')).rejects.toMatchObject({
      constructor: InvalidOptionError,
      option: '$transaction',
      message: expect.stringContaining('another adapter'),
    });
    expect(runs()).toBe(1);
    expect(await work('tenant a')).toBe('tenant a');
  });

  test('never works on the connection of the call before it, where that is of another pool', async () => {
    // Of clients that had connected before, it is not known which adapter is whose.
    const { work } = await routed({ connectedBefore: true });
    const callers = Array.from({ length: 12 }, (_, turn) => (turn % 3 === 0 ? 'tenant b' : 'tenant a'));
    expect(await Promise.all(callers.map(work))).toEqual(callers);
  });

  const works = (adapter: PrismaPg) => shop.client({ adapter, models: [] }).prisma.$withLock(randomUUID(), () => 'in');

  test('is told from a client of its own whose factory is behind an object that calls its methods', async () => {
    const binding = new Proxy(new PrismaPg({ connectionString: inject('postgres').app, max: 2 }), {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    expect(await works(binding)).toBe('in');
  });

  test('is told from a client that shares its pool with another, and had connected before', async () => {
    const pool = shop.pool({ max: 2 });
    const earlier = shop.unextended(new PrismaPg(pool));
    await earlier.$queryRaw`SELECT 1`;
    expect(await works(new PrismaPg(pool))).toBe('in');
    const prisma = shop.extend(earlier, { models: [] });
    expect(await prisma.$withLock(randomUUID(), () => 'in')).toBe('in');
  });
});
