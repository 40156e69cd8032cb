import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { proxyTo } from '../support/proxied.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

const NOWHERE = 'postgresql://nobody@127.0.0.1:1/nothing';

describeWithShop('an adapter without a pool of pg is given back no connection inside of an open transaction', () => {
  const shop = new Shop();
  const lease = { leaseTime: 20_000 };

  /** Two clients on one connection, behind a proxy. Nothing listens where they would have its backend ended. */
  async function world() {
    const { app } = inject('postgres');
    const proxy = await proxyTo(app);
    const pool = shop.pool({ connectionString: proxy.url(app), max: 1 });
    const client = () =>
      shop.client({ adapter: new PoollessPg(pool), rescue: new PrismaPg({ connectionString: NOWHERE }) });
    const [{ prisma: holder, plain }, { prisma: bystander }] = [client(), client()];
    shop.closeLater(() => proxy.close());
    await holder.$withLock('given back', () => {});
    return { proxy, pool, holder, plain, bystander };
  }

  /** A call of somebody else, who gets the connection next. What it commits is its own. */
  const useNext = (bystander: ShopClient, key: string) =>
    bystander.$withLock(
      `${key}:other`,
      (tx) => tx.ledger.create({ data: { key, token: 1n, before: 1, after: 1, worker: 'bystander' } }),
      {
        ...lease,
        waitTime: 20_000,
        maxWait: 20_000,
      },
    );

  test('when the line is silent during a statement of the work, and the work is over its timeout', async () => {
    const { id, key } = await shop.product(10);
    const { proxy, holder, bystander } = await world();
    const held = holder.$withLock(
      key,
      async (tx) => {
        await tx.stock.findFirst();
        proxy.silence('toClient');
        await tx.stock.update({ where: { id }, data: { quantity: 3 } });
      },
      { ...lease, timeout: 300 },
    );
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    const used = useNext(bystander, key);
    proxy.resume();
    await used;
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('when the line is silent during the admission, and the caller gives up', async () => {
    const { id, key } = await shop.product(10);
    const { proxy, pool, holder, bystander } = await world();
    const signal = new AbortController();
    const sent = gate();
    proxy.onData('toServer', (data) => {
      if (data.toString('latin1').includes('fenced_lock')) {
        sent.open();
        proxy.silence('toClient');
      }
      return 'forward';
    });
    const held = holder.$withLock(key, () => {}, { ...lease, signal: signal.signal });
    const told = expect(held).rejects.toThrow('enough');
    await sent.opened;
    signal.abort(new Error('enough'));
    await told;
    // Longer than a connection may be silent that was given up.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const used = bystander.stock.update({ where: { id }, data: { quantity: 5 } });
    proxy.resume();
    await used;
    await eventually('it is back', async () => pool.idleCount === 1);
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('when the client is disconnected inside of the function', async () => {
    const { id, key } = await shop.product(10);
    const { plain, holder, bystander } = await world();
    const held = holder.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 3 } });
      await plain.$disconnect();
      await tx.stock.findFirst();
    });
    await expect(held).rejects.toThrow();
    await useNext(bystander, key);
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
