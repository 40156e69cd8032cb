import { expect, inject, test } from 'vitest';
import { proxied } from '../support/proxied.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a transaction that is given up before it has begun', () => {
  const shop = new Shop();

  test('sends nothing on a connection that comes after `maxWait`', async () => {
    const { key } = await shop.product(10);
    const { prisma, plain, proxy } = await proxied(shop, inject('postgres').app, { max: 1 });
    const [begun, ends] = [gate(), gate()];
    const busy = plain.$transaction(async (tx) => {
      await tx.stock.count();
      begun.open();
      await ends.opened;
    });
    await begun.opened;
    await expect(prisma.$withLock(key, () => {}, { maxWait: 200 })).rejects.toMatchObject({ code: 'P2028' });
    let sent = '';
    proxy.onData('toServer', (data) => {
      sent += data.toString('latin1');
      return 'forward';
    });
    ends.open();
    await busy;
    // It comes behind whoever waited for the connection before.
    await plain.stock.count();
    expect(sent).not.toContain('fenced_lock');
    expect(sent).toContain('COMMIT');
  });
});
