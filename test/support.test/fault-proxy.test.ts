import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';

/** Answers each byte with the same byte. */
let echo: Server;
let proxy: FaultProxy;
let client: Socket;
/** The other end of `client`. */
let server: Socket;

beforeEach(async () => {
  echo = createServer({ allowHalfOpen: true }, (socket) => {
    server = socket.on('error', () => {});
    socket.pipe(socket);
  });
  await once(echo.listen(0, '127.0.0.1'), 'listening');
  const address = echo.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  proxy = await startFaultProxy({ host: '127.0.0.1', port: address.port });
  client = await open();
  // Only then the proxy is connected to the server, too.
  await ask('-');
});
afterEach(async () => {
  client.destroy();
  await proxy.close();
  echo.close();
});

async function open(): Promise<Socket> {
  const socket = connect(proxy.port, proxy.host);
  socket.setEncoding('utf8').on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

async function ask(text: string, socket = client): Promise<string> {
  socket.write(text);
  const [reply] = await once(socket, 'data');
  return String(reply);
}

function silentFor(ms: number, event: string, socket: Socket): Promise<'silent' | 'heard'> {
  return new Promise((resolve) => {
    const heard = () => resolve('heard');
    socket.once(event, heard);
    setTimeout(() => {
      socket.off(event, heard);
      resolve('silent');
    }, ms);
  });
}

test('left alone it passes on everything, in both directions and to the end', async () => {
  const big = 'x'.repeat(5_000_000);
  let got = '';
  client.on('data', (text) => {
    got += String(text);
  });
  client.end(big);
  await once(client, 'end');
  expect(got === big).toBe(true);
});

test('latency delays each direction by itself, without reordering', async () => {
  proxy.latency(60, 'toServer');
  let start = performance.now();
  expect(await ask('a')).toBe('a');
  expect(performance.now() - start).toBeGreaterThanOrEqual(60);

  proxy.latency(60);
  start = performance.now();
  expect(await ask('b')).toBe('b');
  expect(performance.now() - start).toBeGreaterThanOrEqual(120);

  client.write('c');
  proxy.latency(0);
  expect(await ask('d')).toMatch(/^c/);
});

test('silence to the server holds the question back, and resume lets it through', async () => {
  proxy.silence('toServer');
  client.write('held');
  expect(await silentFor(100, 'data', server)).toBe('silent');
  expect(client.destroyed).toBe(false);
  const reply = once(client, 'data');
  proxy.resume();
  expect(await reply).toEqual(['held']);
});

test('refuse turns new connections away and leaves the live ones, until it is taken back', async () => {
  await proxy.refuse();
  await expect(open()).rejects.toThrow('ECONNREFUSED');
  expect(await ask('a')).toBe('a');
  await proxy.refuse(false);
  expect(await ask('b', await open())).toBe('b');
});
