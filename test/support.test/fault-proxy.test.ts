import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
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

/** Unlike `once` it does not mind an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())));
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

test.each(['a slow reader', 'silence'])('%s slows the sender down instead of filling the memory', async (reason) => {
  if (reason === 'silence') proxy.silence('toServer');
  else client.pause();
  const chunk = Buffer.alloc(1_000_000);
  for (let i = 0; i < 100; i++) client.write(chunk);
  await new Promise((resolve) => setTimeout(resolve, 300));
  // The kernel's buffers on the way take a few megabytes each.
  expect(client.writableLength).toBeGreaterThan(50_000_000);
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

test('latency does not make the line narrower: what is sent together arrives together', async () => {
  proxy.latency(100);
  const start = performance.now();
  for (let i = 0; i < 20; i++) {
    client.write('.');
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (let got = ''; got.length < 20; ) got += String((await once(client, 'data'))[0]);
  expect(performance.now() - start).toBeLessThan(600);
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

test('silence to the client holds the answer back, although the server has the question', async () => {
  proxy.silence('toClient');
  const received = once(server, 'data');
  client.write('held');
  expect(String(await received)).toBe('held');
  expect(await silentFor(100, 'data', client)).toBe('silent');
  const reply = once(client, 'data');
  proxy.resume();
  expect(await reply).toEqual(['held']);
});

test('in silence the server does not hear that its client died', async () => {
  proxy.silence('both');
  client.resetAndDestroy();
  expect(await silentFor(100, 'close', server)).toBe('silent');
  proxy.resume();
  await closed(server);
});

test('silence is for later connections as well', async () => {
  proxy.silence('both');
  const later = await open();
  later.write('held');
  expect(await silentFor(100, 'data', later)).toBe('silent');
  const reply = once(later, 'data');
  proxy.resume();
  expect(await reply).toEqual(['held']);
  later.destroy();
});

test('reset breaks the live connections on both sides, and new ones work', async () => {
  const errors: string[] = [];
  for (const socket of [client, server]) socket.on('error', (error) => errors.push(error.message));
  proxy.reset();
  await Promise.all([closed(client), closed(server)]);
  expect(errors).toEqual(['read ECONNRESET', 'read ECONNRESET']);
  expect(await ask('b', await open())).toBe('b');
});

test('reset leaves nothing of a connection whose end is under way', async () => {
  proxy.silence('toServer');
  await new Promise<void>((resolve) => client.end(resolve));
  // It comes after that end, so the proxy has both: the end is held back.
  server.write('!');
  await once(client, 'data');
  proxy.resume();
  proxy.reset();
  client.destroy();
  server.destroy();
  const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap');
  await eventually('all sockets are closed', async () => sockets().length === 0, { within: 2_000 });
});

test('refuse turns new connections away and leaves the live ones, until it is taken back', async () => {
  await proxy.refuse();
  await expect(open()).rejects.toThrow('ECONNREFUSED');
  expect(await ask('a')).toBe('a');
  await proxy.refuse(false);
  expect(await ask('b', await open())).toBe('b');
});

test('counts the live connections', async () => {
  await ask('a');
  const second = await open();
  await ask('b', second);
  expect(proxy.connections).toBe(2);
  second.end();
  await once(second, 'close');
  await expect.poll(() => proxy.connections).toBe(1);
});

test('a hook cuts before the data it chose: the server never gets it', async () => {
  proxy.onData('toServer', (data) => (data.includes('bomb') ? 'cut' : 'forward'));
  let got = '';
  server.on('data', (data) => {
    got += String(data);
  });
  await ask('fine');
  client.write('bomb');
  await Promise.all([closed(client), closed(server)]);
  expect(got).toBe('fine');
});

test('a hook cuts after the data it chose: the server gets it, the client hears nothing', async () => {
  proxy.onData('toServer', (data) => (data.includes('bomb') ? 'cut-after' : 'forward'));
  const received = once(server, 'data');
  const heard = silentFor(100, 'data', client);
  client.write('bomb');
  expect(String(await received)).toBe('bomb');
  expect(await heard).toBe('silent');
  expect(client.destroyed).toBe(true);
  await expect.poll(() => proxy.connections).toBe(0);
});

test('a hook that was taken away is not asked any more', async () => {
  const remove = proxy.onData('toServer', () => 'cut');
  remove();
  expect(await ask('a')).toBe('a');
});

test('to a server that is away it breaks the connection', async () => {
  const { port } = proxy;
  const orphan = await startFaultProxy({ host: '127.0.0.1', port });
  await proxy.close();
  await closed(connect(orphan.port, orphan.host).on('error', () => {}));
  await orphan.close();
});
