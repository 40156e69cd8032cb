import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, test, vi } from 'vitest';
import { describeWithShop } from '../../test/support/shop.js';
import { ExampleWorld } from '../support.js';
import type { PaymentEvent } from './handle-event.js';
import { Outbox } from './outbox.js';
import { webhookServer } from './server.js';

describeWithShop('the webhook', () => {
  const world = new ExampleWorld();

  async function listen(server: Server): Promise<string> {
    world.closeLater(async () => {
      server.close();
      server.closeAllConnections();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Another system: what it was told, and what of it had committed by then. */
  async function receiver() {
    const heard: { order: string; paid: number; committed: number | undefined }[] = [];
    const state = { away: false };
    const url = await listen(
      createServer(async (request, response) => {
        const { order, paid } = (await json(request)) as { order: string; paid: number };
        if (state.away) return response.writeHead(500).end();
        const row = await world.client().payment.findUnique({ where: { order } });
        heard.push({ order, paid, committed: row?.paid });
        response.end();
      }),
    );
    return { url, heard, state };
  }

  async function shop(receiverUrl: string) {
    const prisma = world.client();
    const outbox = new Outbox(prisma, receiverUrl);
    const url = await listen(webhookServer(prisma, outbox));
    const deliver = async (event: PaymentEvent) => {
      const answer = await fetch(`${url}/webhooks/payment`, { method: 'POST', body: JSON.stringify(event) });
      return { status: answer.status, ...((await answer.json()) as { result?: string }) };
    };
    return { deliver, outbox };
  }

  const newEvent = (amount: number): PaymentEvent => ({ id: randomUUID(), order: randomUUID(), amount });
  const paid = async ({ order }: PaymentEvent) =>
    (await world.client().payment.findUniqueOrThrow({ where: { order } })).paid;

  test('an event that is delivered six times at once to two servers has its effect once', async () => {
    const { url, heard } = await receiver();
    const shops = [await shop(url), await shop(url)] as const;
    const event = newEvent(7);
    await world.client().payment.create({ data: { order: event.order } });
    const answers = await Promise.all(Array.from({ length: 6 }, (_, n) => shops[n % 2 === 0 ? 0 : 1].deliver(event)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(answers.filter(({ result }) => result === 'done')).toHaveLength(1);
    expect(await paid(event)).toBe(7);
    expect(heard).toEqual([{ order: event.order, paid: 7, committed: 7 }]);
  });

  test('events of one order that come at once are all counted', async () => {
    const { url, heard } = await receiver();
    const { deliver } = await shop(url);
    const first = newEvent(1);
    await world.client().payment.create({ data: { order: first.order } });
    await Promise.all([2, 3, 4].map((amount) => deliver({ ...first, id: randomUUID(), amount })));
    expect(await paid(first)).toBe(9);
    expect(heard).toHaveLength(3);
  });

  test('an event of an unknown order calls nobody, and has its effect when it is delivered again', async () => {
    const { url, heard } = await receiver();
    const { deliver } = await shop(url);
    const event = newEvent(5);
    expect((await deliver(event)).status).toBe(404);
    expect(heard).toEqual([]);
    await world.client().payment.create({ data: { order: event.order } });
    expect(await deliver(event)).toEqual({ status: 200, result: 'done' });
    expect(heard).toHaveLength(1);
  });

  test('a receiver that is away costs no payment, and is told later', async () => {
    const { url, heard, state } = await receiver();
    const { deliver, outbox } = await shop(url);
    const event = newEvent(5);
    await world.client().payment.create({ data: { order: event.order } });
    state.away = true;
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    expect(await deliver(event)).toEqual({ status: 200, result: 'done' });
    // Nobody listens to the events of this client, so the failed hook is a warning of the process.
    expect(warned).toHaveBeenCalledOnce();
    warned.mockRestore();
    expect(await paid(event)).toBe(5);
    state.away = false;
    expect(await outbox.sendAll()).toBe(1);
    expect(heard).toEqual([{ order: event.order, paid: 5, committed: 5 }]);
    expect(await outbox.sendAll()).toBe(0);
  });
});
