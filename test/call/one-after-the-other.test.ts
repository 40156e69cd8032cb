import { expect, inject, test } from 'vitest';
import * as scripts from '../../src/redis/scripts.generated.js';
import { Monitor } from '../redis/monitor.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop, type ShopClient, STAYS } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

describeWithShop('calls of one process, one right after the other', () => {
  const shop = new Shop();
  const CALLS = 60;
  /** Less than the time from which a turn counts as long; milliseconds. */
  const LONG = 4;

  /** What Redis has of a key. */
  const inRedis = (key: string) => shop.redis().keys(`*${key}*`);
  const sellOne = (prisma: ShopClient, { id, key }: { id: number; key: string }) =>
    prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));

  /**
   * So many calls, and what Redis was sent about their key, by the names of the scripts. `long`: how many of them lasted,
   * as on a busy machine, so that somebody else may have come to wait.
   */
  async function calls(prisma: ShopClient): Promise<{ id: number; sent: Record<string, number>; long: number }> {
    const product = await shop.product(CALLS);
    const admin = shop.redis();
    for (const { lua } of Object.values(scripts)) await admin.script('LOAD', lua);
    const monitor = await Monitor.start(inject('redis').url as string);
    shop.closeLater(() => monitor.stop());
    let long = 0;
    for (let call = 0; call < CALLS; call++) {
      const since = performance.now();
      await sellOne(prisma, product);
      if (performance.now() - since > LONG) long++;
    }
    await eventually('nothing is left', async () => (await inRedis(product.key)).length === 0);
    const sent: Record<string, number> = {};
    const names = new Map(Object.values(scripts).map(({ sha1, name }) => [sha1 as string | undefined, name]));
    for (const [, sha1] of await monitor.about(product.key)) {
      const name = names.get(sha1);
      if (name !== undefined) sent[name] = (sent[name] ?? 0) + 1;
    }
    return { id: product.id, sent, long };
  }

  test('send Redis nothing in between, as long as no hand-over is due', async () => {
    const { prisma } = shop.client(STAYS);
    for (let tries = 1; ; tries++) {
      const { id, sent, long } = await calls(prisma);
      expect((await shop.row(id))?.quantity).toBe(0);
      // A turn that lasts, as on a busy machine, asks whether somebody has come to wait, and renews its lease. And a file
      // that runs beside this one may list all keys.
      const { acquire = 0, release = 0, hint: _, inspect: __, extend: ___, ...others } = sent;
      expect(release).toBe(acquire);
      expect(others).toEqual({});
      // Two of the first two calls. More only where the event loop stood still for longer than a call may come behind
      // another, as on a busy machine.
      if (acquire < CALLS / 3 + long) break;
      expect(tries).toBeLessThan(5);
    }
  });

  test("ask each time where fairness is 'strict'", async () => {
    const { prisma } = shop.client({ fairness: 'strict' });
    const { sent } = await calls(prisma);
    expect(sent['acquire']).toBeGreaterThanOrEqual(CALLS);
    expect(sent['release']).toBe(CALLS);
  });

  test.each<[string, (prisma: ShopClient) => Promise<unknown>]>([
    ['$disconnect', (prisma) => prisma.$disconnect()],
    ['$locks.close', (prisma) => prisma.$locks.close()],
  ])('leave nothing in Redis when %s is called right behind the last', async (_, close) => {
    const { prisma } = shop.client();
    const product = await shop.product(10);
    for (let call = 0; call < 10; call++) await sellOne(prisma, product);
    await close(prisma);
    expect(await inRedis(product.key)).toEqual([]);
  });

  test('leave nothing in Redis when the process exits right behind the last', async () => {
    const { key } = await shop.product(10);
    const args = [inject('postgres').app, inject('redis').url as string, key];
    const worker = startWorker(new URL('./quitter.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    const end = await worker.exited;
    expect(end, worker.output).toEqual({ code: 7, signal: null });
    // Long before the lease would have ended by itself.
    const since = performance.now();
    await eventually('it is given back', async () => (await inRedis(key)).length === 0);
    expect(performance.now() - since).toBeLessThan(5_000);
  });

  test('let an operator take the key in between, and the next one gets it anew', async () => {
    const { prisma } = shop.client();
    const product = await shop.product(10);
    const tokens: bigint[] = [];
    for (let call = 0; call < 10; call++) {
      tokens.push(await prisma.$withLock(product.key, (_, { token }) => token));
      if (call % 3 === 2) await prisma.$locks.forceRelease(product.key);
    }
    expect(tokens).toEqual(tokens.toSorted((one, other) => (one < other ? -1 : 1)));
    await eventually('nothing is left', async () => (await inRedis(product.key)).length === 0);
  });
});
