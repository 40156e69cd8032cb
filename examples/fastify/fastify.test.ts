import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, inject, test, vi } from 'vitest';
import {
  ClosedError,
  CommitUnknownError,
  InvalidOptionError,
  LockLostError,
  LockTimeoutError,
} from '../../src/index.js';
import { describeWithShop, gate, Shop } from '../../test/support/shop.js';
import { createApp } from './app.js';
import { createClient } from './client.js';
import { answerError } from './errors.js';

describeWithShop('the Fastify application', () => {
  const shop = new Shop();

  function app() {
    const made = createApp(createClient(inject('postgres').app, inject('redis').url as string));
    shop.closeLater(() => made.close());
    return made;
  }

  test('creates a product, sells it, and refuses to sell more than there is', async () => {
    const server = app();
    const created = await server.inject({ method: 'POST', url: '/stock', payload: { quantity: 3 } });
    expect(created.statusCode).toBe(201);
    const { id } = created.json<{ id: number }>();
    const sell = (quantity: unknown) =>
      server.inject({ method: 'POST', url: `/stock/${id}/sell`, payload: { quantity } });
    expect((await sell(2)).json()).toMatchObject({ id, quantity: 1 });
    expect((await sell(2)).statusCode).toBe(409);
    expect((await sell('many')).statusCode).toBe(400);
    expect((await server.inject(`/stock/${id}`)).json()).toMatchObject({ quantity: 1 });
    expect((await server.inject('/stock/0')).statusCode).toBe(404);
    expect((await shop.row(id))?.quantity).toBe(1);
  });

  test('a client that goes away before the handler begins buys nothing, and its error is not logged', async () => {
    const server = app();
    const { id } = await shop.product(3);
    const arrived = gate();
    const ended = gate<unknown>();
    const logged = vi.fn();
    server.addHook('preHandler', async ({ log }, reply) => {
      log.error = logged;
      arrived.open();
      await once(reply.raw, 'close');
    });
    server.addHook('onSend', async () => ended.open('answered'));
    server.addHook('onError', async (_, _reply, error) => ended.open(error));
    await server.listen({ port: 0, host: '127.0.0.1' });
    const { port } = server.server.address() as AddressInfo;
    const headers = { 'content-type': 'application/json' };
    const client = request({ host: '127.0.0.1', port, path: `/stock/${id}/sell`, method: 'POST', headers });
    client.on('error', () => {});
    client.end('{"quantity":2}');
    await arrived.opened;
    client.destroy();
    expect(await ended.opened).toMatchObject({ message: 'the client has gone away' });
    await server.close();
    expect(logged).not.toHaveBeenCalled();
    expect((await shop.row(id))?.quantity).toBe(3);
  });
});

describe('an error as an answer', () => {
  const answers = [
    { error: new LockTimeoutError('stock:1', '10 s'), status: 409 },
    { error: new ClosedError('It was closed.'), status: 503 },
    { error: new LockLostError('stock:1', 'gone'), status: 503 },
    { error: new CommitUnknownError('stock:1', '1', undefined), status: 500 },
    { error: new InvalidOptionError('waitTime', 'is bad.'), status: 500 },
  ];
  test.each(answers)(
    '$error.code is $status, and may be sent again only if nothing was done',
    async ({ error, status }) => {
      const app = fastify().setErrorHandler(answerError);
      app.get('/', async () => {
        throw error;
      });
      const answer = await app.inject('/');
      expect(answer.statusCode).toBe(status);
      expect(answer.headers['retry-after']).toBe(status === 500 ? undefined : '1');
      await app.close();
    },
  );
});
