import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request as plainRequest,
  type RequestListener,
  type Server,
} from 'node:http';
import { connect, createServer as createHttp2 } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { afterAll, expect, test } from 'vitest';
import { type Board, createBoard, toNodeListener } from '../../../src/addons/board/index.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { expectServed } from './served.js';

const BASE = '/admin/locks';

/** As in docs/guides/board.md. */
const MOUNTS: Record<string, (board: Board) => RequestListener | Promise<RequestListener>> = {
  'node:http': (board) => toNodeListener(board),
  'Express, behind a body parser': (board) => {
    const app = express();
    app.use(express.json());
    app.use(BASE, toNodeListener(board));
    return app;
  },
  Fastify: async (board) => {
    const app = fastify();
    await app.register(async (scope) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
      const listener = toNodeListener(board);
      for (const url of [BASE, `${BASE}/*`]) {
        scope.all(url, (request, reply) => {
          reply.hijack();
          listener(request.raw, reply.raw);
        });
      }
    });
    await app.ready();
    return (request, response) => app.routing(request, response);
  },
  Hono: (board) => {
    const app = new Hono();
    for (const path of [BASE, `${BASE}/*`]) app.all(path, (context) => board(context.req.raw));
    return toNodeListener(async (request) => app.fetch(request));
  },
};

describeWithShop('mounted', () => {
  const shop = new Shop();
  const servers: Server[] = [];
  afterAll(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    servers.push(server);
    await new Promise((resolve) => server.once('listening', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  test.each(Object.entries(MOUNTS))('in %s: page, files, events and a force release', async (_, mount) => {
    const keyPrefix = `mount-${process.pid}-${servers.length}:`;
    const { prisma } = shop.client({ keyPrefix });
    const board = createBoard(prisma, {
      basePath: BASE,
      allowForceRelease: true,
      hosts: ['127.0.0.1'],
      refreshInterval: 100,
    });
    const origin = await serve(await mount(board));
    await expectServed(origin, BASE, prisma, keyPrefix);
  });

  test('fifty pages may be open at once; one more is told so, and may be opened when another one was closed', async () => {
    const { prisma } = shop.client();
    const origin = await serve(toNodeListener(createBoard(prisma, { refreshInterval: 100 })));
    const asked = (path: string) => {
      const request = plainRequest(`${origin}${path}`, { agent: false }).end();
      return once(request, 'response').then(([answer]) => ({ request, answer: answer as IncomingMessage }));
    };
    // None of them reads.
    const viewers = await Promise.all(Array.from({ length: 50 }, () => asked('/events')));
    expect(viewers.map(({ answer }) => answer.statusCode)).toEqual(viewers.map(() => 200));
    // A page whose stream has ended would ask on it again, and the server never end.
    expect(viewers[0]?.answer.headers.connection).toBe('close');
    for (const path of ['/events', '/']) {
      const { answer } = await asked(path);
      expect([answer.statusCode, await text(answer)]).toEqual([503, expect.stringMatching(/^50 pages .*\.\n$/)]);
    }
    viewers[0]?.request.destroy();
    await eventually('there is room again', async () => {
      const { request, answer } = await asked('/events');
      if (answer.statusCode !== 200) request.destroy();
      return answer.statusCode === 200;
    });
    for (const { request } of viewers) request.destroy();
  });

  test.each(['//evil.example/board.js', '/%00', '/\\evil.example', 'http://evil.example/admin/locks'])(
    'a path that is none finds nothing: %s',
    async (path) => {
      const { prisma } = shop.client();
      const origin = new URL(await serve(toNodeListener(createBoard(prisma, { basePath: BASE }))));
      const status = await new Promise<number | undefined>((resolve) => {
        plainRequest({ host: origin.hostname, port: origin.port, path }, (answer) => resolve(answer.statusCode)).end();
      });
      expect([400, 404]).toContain(status);
    },
  );

  test('over HTTP/2, which names the host in `:authority`', async () => {
    const { prisma } = shop.client();
    const board = createBoard(prisma, { hosts: ['localhost'] });
    const listener = toNodeListener(board);
    const server = createHttp2(listener as never).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const statusAt = async (authority: string) => {
      const stream = session.request({ ':path': '/', ':authority': authority });
      const [headers] = await once(stream, 'response');
      stream.resume();
      return headers[':status'];
    };
    expect(await statusAt('localhost:3000')).toBe(200);
    expect(await statusAt('rebound.example.com')).toBe(421);
    session.close();
    server.close();
  });
});
