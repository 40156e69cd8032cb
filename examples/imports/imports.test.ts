import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeWithShop, gate } from '../../test/support/shop.js';
import { ExampleWorld } from '../support.js';
import { importPayment } from './imports.js';

describeWithShop('imports', () => {
  const world = new ExampleWorld();

  test('of five processes, three fetch at a time, and all are written', async () => {
    const clients = Array.from({ length: 5 }, () => world.client());
    const three = gate();
    let open = 0;
    let most = 0;
    const fetch = async () => {
      most = Math.max(most, ++open);
      if (open === 3) three.open();
      await three.opened;
      open--;
      return 7;
    };
    const orders = Array.from({ length: 15 }, () => randomUUID());
    const permits = await Promise.all(
      orders.map((order, n) => importPayment(clients[n % 5] as (typeof clients)[0], order, fetch)),
    );
    expect(most).toBe(3);
    expect(new Set(permits)).toEqual(new Set([0, 1, 2]));
    expect(await world.client().payment.count({ where: { order: { in: orders } } })).toBe(15);
  });
});
