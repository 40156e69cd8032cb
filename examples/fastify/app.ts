import { randomUUID } from 'node:crypto';
import { type FastifyInstance, fastify } from 'fastify';
import type { Clients } from './client.js';
import { answerError, NotFoundError, OutOfStockError } from './errors.js';

const PARAMS = { type: 'object', properties: { id: { type: 'integer' } } } as const;
const QUANTITY = {
  type: 'object',
  required: ['quantity'],
  properties: { quantity: { type: 'integer', minimum: 1 } },
} as const;

interface Sale {
  readonly Params: { id: number };
  readonly Body: { quantity: number };
}

/** The whole application: its routes, its errors and its end. It closes the clients that it is given. */
export function createApp({ prisma, redis }: Clients, { name = 'shop' } = {}): FastifyInstance {
  const app = fastify({ logger: { level: process.env['LOG_LEVEL'] ?? 'warn' } });
  app.setErrorHandler(answerError);

  app.post<{ Body: Sale['Body'] }>('/stock', { schema: { body: QUANTITY } }, async ({ body }, reply) => {
    const stock = await prisma.stock.create({ data: { product: randomUUID(), quantity: body.quantity } });
    return reply.code(201).send(stock);
  });

  app.get<{ Params: Sale['Params'] }>('/stock/:id', { schema: { params: PARAMS } }, async ({ params: { id } }) => {
    const stock = await prisma.stock.findUnique({ where: { id } });
    if (stock === null) throw new NotFoundError(`There is no product ${id}.`);
    return stock;
  });

  app.post<Sale>('/stock/:id/sell', { schema: { params: PARAMS, body: QUANTITY } }, async (request, reply) => {
    const { id } = request.params;
    const { quantity } = request.body;
    // Who has gone away does not keep a place in the queue.
    const gone = new AbortController();
    const abort = () => gone.abort(new Error('the client has gone away'));
    reply.raw.on('close', abort);
    // Gone before this line, as while an async hook ran.
    if (reply.raw.closed) abort();
    return await prisma.$withLock(
      `stock:${id}`,
      async (tx) => {
        const stock = await tx.stock.findUnique({ where: { id } });
        if (stock === null) throw new NotFoundError(`There is no product ${id}.`);
        if (stock.quantity < quantity) throw new OutOfStockError();
        await tx.order.create({ data: { stockId: id, buyer: name, quantity } });
        return await tx.stock.update({ where: { id }, data: { quantity: stock.quantity - quantity } });
      },
      { signal: gone.signal },
    );
  });

  // A client that keeps its connection would keep the server from closing.
  let isEnding = false;
  app.addHook('onSend', async (_, reply) => {
    if (isEnding) reply.header('connection', 'close');
  });
  // Turns away who waits, lets the work that runs end, gives the leases back. New requests get 503 by now.
  app.addHook('preClose', () => {
    isEnding = true;
    return prisma.$locks.close();
  });
  // All requests have been answered.
  app.addHook('onClose', async () => {
    await prisma.$disconnect();
    redis.disconnect();
  });
  return app;
}
