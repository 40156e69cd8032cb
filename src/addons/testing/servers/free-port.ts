import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the range from which the kernel takes ports for outgoing connections: a server that was killed must get its
 * port again, and a client that keeps trying a dead port inside that range can be connected to itself. 10,000 are left
 * above each, for the bus port of a Redis Cluster node.
 */
const FIRST = 10_240;
const LAST = 22_240;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false);
      else reject(error);
    });
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
