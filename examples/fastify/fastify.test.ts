import { fastify } from 'fastify';
import { describe, expect, inject, test } from 'vitest';
import {
  ClosedError,
  CommitUnknownError,
  InvalidOptionError,
  LockLostError,
  LockTimeoutError,
} from '../../src/index.js';
import { describeWithShop, Shop } from '../../test/support/shop.js';
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
});

describe('an error as an answer', () => {
  const answers = [
    { error: new LockTimeoutError('stock:1', '10 s'), status: 503 },
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
      expect(answer.headers['retry-after']).toBe(status === 503 ? '1' : undefined);
      await app.close();
    },
  );
});
