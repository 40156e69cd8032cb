import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { eventually } from '../../test/support/eventually.js';
import { describeWithShop } from '../../test/support/shop.js';
import { ExampleWorld } from '../support.js';
import { couponServer } from './server.js';

describeWithShop('the redemption of coupons', () => {
  const world = new ExampleWorld();

  async function newCode(left: number): Promise<string> {
    const code = randomUUID();
    await world.client().coupon.create({ data: { code, left } });
    return code;
  }

  /** A server with a client of its own. Resolves to what sends it a request. */
  async function shop() {
    const server = couponServer(world.client()).listen(0, '127.0.0.1');
    world.closeLater(async () => {
      server.close();
      server.closeAllConnections();
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return (code: string, user: string) =>
      fetch(`http://127.0.0.1:${port}/coupons/${code}/redeem?user=${user}`, { method: 'POST' });
  }

  /**
   * As a client that sends again what was busy, or what a server could not do in time. It may be busy behind its own request,
   * too: that lock may still be on its way back.
   */
  function answered(send: () => Promise<Response>): Promise<number> {
    return eventually(
      'the request is answered',
      async () => {
        const { status } = await send();
        return status !== 202 && status !== 503 && status;
      },
      { within: 25_000, every: 25 },
    );
  }

  test('redeems a code once for each user, and as often as there is', async () => {
    const code = await newCode(2);
    const send = await shop();
    const redeem = (user: string) => answered(() => send(code, user));
    expect(await redeem('ann')).toBe(200);
    expect(await redeem('ann')).toBe(409);
    expect(await redeem('ben')).toBe(200);
    expect(await redeem('cid')).toBe(410);
    expect(await answered(() => send('no-such-code', 'ann'))).toBe(404);
  });

  test('answers 202 at once while somebody else is served, and does nothing', async () => {
    const code = await newCode(5);
    const send = await shop();
    const holder = await world.client().$lock(`coupon:${code}`);
    const busy = await send(code, 'ann');
    expect(busy.status).toBe(202);
    expect(busy.headers.get('retry-after')).toBe('1');
    expect(await world.client().redemption.count({ where: { code } })).toBe(0);
    await holder.release();
    expect(await answered(() => send(code, 'ann'))).toBe(200);
  });

  test('redeems no more than there is by many users at two servers who send again', async () => {
    const code = await newCode(7);
    const shops = await Promise.all([shop(), shop()]);
    const statuses = await Promise.all(
      Array.from({ length: 30 }, (_, n) => {
        const send = shops[n % 2] as (typeof shops)[0];
        return answered(() => send(code, `user-${n}`));
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(7);
    expect(statuses.filter((status) => status === 410)).toHaveLength(23);
    expect(await world.client().redemption.count({ where: { code } })).toBe(7);
  });
});
