import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import type { ExampleClient } from '../client.js';
import { handleEvent, type PaymentEvent, UnknownOrderError } from './handle-event.js';
import type { Outbox } from './outbox.js';

/** `POST /webhooks/payment`. A provider delivers again whatever is not answered with 2xx. */
export function webhookServer(prisma: ExampleClient, outbox: Outbox): Server {
  return createServer(async (request, response) => {
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.method !== 'POST' || request.url !== '/webhooks/payment') return send(404, {});
    try {
      // Check the provider's signature here.
      const event = (await json(request)) as PaymentEvent;
      send(200, { result: await handleEvent(prisma, outbox, event) });
    } catch (error) {
      if (error instanceof UnknownOrderError) return send(404, { message: error.message });
      console.error(error);
      // Nothing was done, or nobody knows: a second delivery finds out.
      send(503, { message: 'deliver it again' });
    }
  });
}
