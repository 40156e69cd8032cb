import { expect, inject, test } from 'vitest';
import { proxied } from '../support/proxied.js';
import { describeWithShop, Shop, type ShopClient, sale } from '../support/shop.js';

describeWithShop('several keys', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** Two products; the first one's key is the first in the order of their bytes. */
  async function pair() {
    const products = [await shop.product(10), await shop.product(10)];
    const [one, two] = products.toSorted((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
    return [one, two] as [(typeof products)[0], (typeof products)[0]];
  }

  test.each(['the first', 'the last'])(
    'are all or none: with %s held elsewhere the other is given back',
    async (which) => {
      const [one, two] = await pair();
      const [taken, free] = which === 'the first' ? [one, two] : [two, one];
      const holder = await shop.client().prisma.$lock(taken.key);
      const bystander = shop.client().prisma;
      expect(await prisma.$tryWithLock([one.key, two.key], () => 'in')).toEqual({ acquired: false });
      expect(await bystander.$withLock(free.key, () => 'free')).toBe('free');
      const late = prisma.$withLock([one.key, two.key], () => 'in', { waitTime: 50 });
      await expect(late).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key: taken.key });
      expect(await bystander.$withLock(free.key, () => 'free')).toBe('free');
      const abort = new AbortController();
      const patient = prisma.$withLock([one.key, two.key], () => 'in', { signal: abort.signal });
      await shop.queued(taken.key);
      abort.abort('closing time');
      expect(await patient.catch((error: unknown) => error)).toBe('closing time');
      expect(await bystander.$withLock(free.key, () => 'free')).toBe('free');
      await holder.release();
      expect(await bystander.$withLock([one.key, two.key], () => 'free')).toBe('free');
    },
  );

  test('where the lease of one is lost while another is waited for, the call ends, and is told that', async () => {
    const [one, two] = await pair();
    const holder = await shop.client().prisma.$lock(two.key);
    const late = prisma.$withLock([one.key, two.key], () => 'in', { leaseTime: 1_500 });
    const settled = late.catch((error: unknown) => error);
    await shop.queued(two.key);
    await shop.redis().del(`fenced-lock:{${one.key}}:lease`);
    expect(await settled).toMatchObject({ code: 'LOCK_LOST', key: one.key });
    await holder.release();
  });

  test('taken in opposite orders by many callers of two clients never stand in each other’s way for good', async () => {
    const products = await Promise.all(Array.from({ length: 5 }, () => shop.product(10_000)));
    const expected = new Map(products.map(({ id }) => [id, 10_000]));
    const errand = async (client: ShopClient) => {
      const chosen = products.toSorted(() => Math.random() - 0.5).slice(0, 2 + Math.floor(Math.random() * 3));
      for (const { id } of chosen) expected.set(id, (expected.get(id) as number) - 1);
      const keys = chosen.map(({ key }) => key);
      await client.$withLock(keys, async (tx) => {
        for (const { id } of chosen) await sale(id)(tx);
      });
    };
    const clients = [shop.client().prisma, shop.client().prisma];
    await Promise.all(
      Array.from({ length: 8 }, async (_, loop) => {
        for (let turn = 0; turn < 10; turn++) await errand(clients[loop % 2] as ShopClient);
      }),
    );
    const left = await Promise.all(products.map(async ({ id }) => [id, (await shop.row(id))?.quantity]));
    expect(left).toEqual([...expected]);
  }, 90_000);

  /** What Postgres has registered, in the order in which they are named. */
  async function tokensOf(keys: readonly string[]): Promise<bigint[]> {
    const { rows } = await shop.admin.query<{ key: string; token: string }>(
      'SELECT key, token FROM fenced_lock.admission WHERE key = ANY ($1)',
      [keys],
    );
    const tokens = new Map(rows.map(({ key, token }) => [key, BigInt(token)]));
    return keys.map((key) => tokens.get(key) as bigint);
  }

  test('are admitted by one statement, each with a token of its own, and `lock.token` is the highest', async () => {
    const client = await proxied(shop, inject('postgres').app);
    const products = await Promise.all(Array.from({ length: 5 }, () => shop.product(10)));
    let admissions = 0;
    client.proxy.onData('toServer', (data) => {
      const text = data.toString('latin1');
      // One that began ahead of its leases is rolled back if they take long, as on a busy machine.
      if (text.includes('BEGIN')) admissions = 0;
      admissions += text.split('fenced_lock.admit(').length - 1;
      return 'forward';
    });
    const { token, keys } = await client.prisma.$withLock(
      products.map(({ key }) => key),
      async (tx, lock) => {
        for (const { id } of products) await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        return lock;
      },
    );
    expect(admissions).toBe(1);
    const tokens = await tokensOf(keys);
    expect(new Set(tokens).size).toBe(5);
    expect(tokens.reduce((one, other) => (one > other ? one : other))).toBe(token);
    for (const { id } of products) expect(await shop.row(id)).toEqual({ quantity: 9, fence: token });
  });
});
