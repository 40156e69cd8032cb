import { describe, expect, inject, test } from 'vitest';
import { memoryStore } from '../../src/index.js';
import { Monitor } from '../redis/monitor.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('turns', () => {
  const shop = new Shop();

  describe.each([
    ['on Redis', undefined],
    ['with a memory store', memoryStore()],
  ])('%s', (_, store) => {
    test('go to the callers of one process in the order in which they asked, and so they finish', async () => {
      const { id, key } = await shop.product(64);
      const { prisma } = shop.client({ ...(store && { redis: store }) });
      const finished: number[] = [];
      const tokens: bigint[] = [];
      await Promise.all(
        Array.from({ length: 64 }, async (_, caller) => {
          await prisma.$withLock(key, async (tx, { token }) => {
            tokens[caller] = token;
            await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
          });
          finished.push(caller);
        }),
      );
      expect(finished).toEqual(Array.from({ length: 64 }, (_, caller) => caller));
      expect(tokens).toEqual(tokens.toSorted((one, other) => (one < other ? -1 : 1)));
      expect((await shop.row(id))?.quantity).toBe(0);
    });

    test('go on after one that was rolled back, and the next one finds nothing of it', async () => {
      const { id, key } = await shop.product(10);
      const { prisma } = shop.client({ ...(store && { redis: store }) });
      const turns = await Promise.allSettled(
        [false, true, false, true, false].map((fails) =>
          prisma.$withLock(key, async (tx) => {
            await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
            if (fails) throw new Error('no sale');
          }),
        ),
      );
      expect(turns.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'rejected',
        'fulfilled',
      ]);
      expect((await shop.row(id))?.quantity).toBe(7);
    });

    test('go on past a caller that has given up', async () => {
      const { key } = await shop.product(10);
      const { prisma } = shop.client({ ...(store && { redis: store }) });
      const goOn = gate();
      const held = prisma.$withLock(key, () => goOn.opened);
      const abort = new AbortController();
      const impatient = prisma.$withLock(key, () => 'in', { signal: abort.signal }).catch((error: unknown) => error);
      const late = prisma.$withLock(key, () => 'in', { waitTime: 30 });
      const last = prisma.$withLock(key, () => 'last');
      await expect(late).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key });
      abort.abort('closing time');
      expect(await impatient).toBe('closing time');
      goOn.open();
      await held;
      expect(await last).toBe('last');
    });
  });

  test('pass from caller to caller of one process without Redis', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const monitor = await Monitor.start(inject('redis').url as string);
    shop.closeLater(() => monitor.stop());
    await Promise.all(Array.from({ length: 16 }, () => prisma.$withLock(key, () => {})));
    const sent = (await monitor.about(key)).filter(([verb]) => verb === 'evalsha' || verb === 'eval');
    // The lease, taken and given back; each once more where the server had not seen the script.
    expect(sent.length).toBeLessThanOrEqual(6);
  });

  /** Whose turn it was, in the order of the tokens, when the callers of all clients had asked before the first turn. */
  async function turnsOf(clients: readonly ShopClient[], callers: number, key: string): Promise<number[]> {
    const holder = await shop.client().prisma.$lock(key);
    const turns: { token: bigint; process: number }[] = [];
    const all = clients.flatMap((client, process) =>
      Array.from({ length: callers }, () =>
        client.$withLock(key, (_, { token }) => turns.push({ token, process }), { waitTime: 25_000 }),
      ),
    );
    const redis = shop.redis();
    await eventually(
      'all of them wait',
      async () => (await redis.llen(`fenced-lock:{${key}}:queue`)) === clients.length,
    );
    await holder.release();
    await Promise.all(all);
    return turns.toSorted((one, other) => (one.token < other.token ? -1 : 1)).map(({ process }) => process);
  }

  test('go round among processes that all wait, each for a few of its callers', async () => {
    const { key } = await shop.product(1);
    const clients = [0, 1, 2].map(() => shop.client({ maxLocalHandovers: 3 }).prisma);
    const turns = await turnsOf(clients, 12, key);
    // Four callers each time: the first, and three that it was passed on to.
    const rounds = Array.from({ length: 9 }, (_, round) => turns.slice(round * 4, round * 4 + 4));
    expect(rounds.map((round) => new Set(round).size)).toEqual(Array.from({ length: 9 }, () => 1));
    const order = rounds.map(([process]) => process);
    const first = order.slice(0, 3);
    expect(new Set(first).size).toBe(3);
    expect(order).toEqual([...first, ...first, ...first]);
  });

  test('are had by no process for less than half its share in any 64 of them', async () => {
    const { key } = await shop.product(1);
    const turns = await turnsOf([shop.client().prisma, shop.client().prisma], 64, key);
    for (let from = 0; from + 64 <= turns.length; from++) {
      const mine = turns.slice(from, from + 64).filter((process) => process === 0).length;
      expect(mine).toBeGreaterThanOrEqual(16);
      expect(64 - mine).toBeGreaterThanOrEqual(16);
    }
  });

  test("are in one order over all processes where fairness is 'strict'", async () => {
    const { key } = await shop.product(1);
    const clients = [0, 1].map(() => shop.client({ fairness: 'strict' }).prisma);
    const holder = await shop.client().prisma.$lock(key);
    const redis = shop.redis();
    const asked: Promise<bigint>[] = [];
    for (const process of [0, 0, 1, 0, 1, 1, 0, 1]) {
      asked.push((clients[process] as ShopClient).$withLock(key, (_, { token }) => token));
      const place = asked.length;
      await eventually('it has its place', async () => (await redis.llen(`fenced-lock:{${key}}:queue`)) === place);
    }
    await holder.release();
    const tokens = await Promise.all(asked);
    expect(tokens).toEqual(tokens.toSorted((one, other) => (one < other ? -1 : 1)));
  });
});
