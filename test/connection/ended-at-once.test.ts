import { createServer } from 'node:net';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { fencePool } from '../../src/connection/pool.js';

const message = (type: string, body: string) => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
};

/** What a server that shuts down may have in one packet: the session has begun, and is ended. */
const BEGUN_AND_ENDED = Buffer.concat([
  message('R', '\0\0\0\0'),
  message('Z', 'I'),
  message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'),
]);

// A real server does this in a moment that no test can choose.
test('a session that is ended in the very moment it begins fails its first statement, and not the process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(BEGUN_AND_ENDED));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'x', database: 'x' });
  pool.on('error', () => {});
  fencePool(pool as never);
  const client = await pool.connect();
  await expect(client.query('SELECT 1')).rejects.toThrow();
  client.release(true);
});
