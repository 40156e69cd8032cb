import { createServer, type Server } from 'node:http';
import type { ExampleClient } from '../client.js';
import { redeem } from './redeem.js';

const ROUTE = /^\/coupons\/([\w-]+)\/redeem\?user=([\w-]+)$/;

/** `POST /coupons/:code/redeem?user=:user`. The user comes from the session in a real shop. */
export function couponServer(prisma: ExampleClient): Server {
  return createServer(async (request, response) => {
    const send = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    const [, code, user] = ROUTE.exec(request.url ?? '') ?? [];
    if (request.method !== 'POST' || code === undefined || user === undefined) return send(404, {});
    try {
      const { status, body, headers } = await redeem(prisma, code, user);
      send(status, body, headers);
    } catch (error) {
      // Redis or Postgres is away, or the transaction was rolled back. The log has the error, the user need not.
      console.error(error);
      send(503, { message: 'try again later' }, { 'retry-after': '1' });
    }
  });
}
