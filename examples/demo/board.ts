import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { createBoard, toNodeListener } from '../../src/addons/board/index.js';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../../test/generated/prisma/client.js';
import type { Scene } from './stage.js';

/** A page that shows the locks of all shops, and the way to end it. It asks the servers only while somebody looks. */
export interface OpenBoard {
  readonly url: string;
  /** Resolves when somebody has opened the page. */
  readonly seen: Promise<void>;
  close(): Promise<void>;
}

export async function openBoard({ databaseUrl, redis: { url: redisUrl } }: Scene): Promise<OpenBoard> {
  const redis = new Redis(redisUrl);
  // A server that is restarted meanwhile is shown by the page itself.
  redis.on('error', () => {});
  const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  const prisma = plain.$extends(fencedLock({ redis }));
  const board = createBoard(prisma, { title: 'Three shops, one product', refreshInterval: 200 });
  let opened: () => void = () => {};
  const seen = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const listener = toNodeListener(board);
  const server = createServer((request, response) => {
    if (request.url === '/events') opened();
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    seen,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async close() {
      board.close();
      server.closeAllConnections();
      server.close();
      redis.disconnect();
      await prisma.$disconnect();
    },
  };
}
