// A provider delivers three events of an order, each of them four times and all at once.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient } from '../client.js';
import { Outbox } from './outbox.js';
import { webhookServer } from './server.js';

const { prisma, close } = createClient();
const servers: Server[] = [];
try {
  const warehouse = await listen(
    createServer((request, response) => {
      console.log(`the warehouse hears of message ${request.headers['idempotency-key']}`);
      response.end();
    }),
  );
  const url = await listen(webhookServer(prisma, new Outbox(prisma, warehouse)));
  const order = randomUUID();
  await prisma.payment.create({ data: { order } });
  const events = [5, 7, 9].map((amount) => ({ id: `evt-${randomUUID()}`, order, amount }));
  const results = await Promise.all(
    [...events, ...events, ...events, ...events].map(async (event) => {
      const answer = await fetch(`${url}/webhooks/payment`, { method: 'POST', body: JSON.stringify(event) });
      return (await answer.json()) as { result: 'done' | 'seen' };
    }),
  );
  const done = results.filter(({ result }) => result === 'done').length;
  const { paid } = await prisma.payment.findUniqueOrThrow({ where: { order } });
  console.log(`${results.length} deliveries, ${done} with an effect; paid: ${paid}`);
} finally {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  await close();
}

async function listen(server: Server): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
