import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import pg from 'pg';
import { afterAll, expect, inject, test } from 'vitest';
import { run } from '../../src/cli/program.js';
import { forceRequest, Viewer } from '../addons/board/viewer.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { asked, askedLines } from './operator.js';

/** Runs the command until it ends, or is stopped. */
function start(args: readonly string[]) {
  const { opened: stopped, open: stop } = gate();
  const written = { out: '', err: '' };
  const code = run(['board', '--port', '0', ...args], {
    cwd: process.cwd(),
    env: { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url },
    now: () => new Date(),
    stdout: { write: (text) => (written.out += text) },
    stderr: { write: (text) => (written.err += text) },
    stopped: () => stopped,
  });
  return { written, code, stop };
}

/** A board that the command serves, until it is stopped. */
async function serve(keyPrefix: string, ...args: string[]) {
  const started = start(['--key-prefix', keyPrefix, ...args]);
  const url = await eventually('it listens', async () => /http:\S+\//.exec(started.written.out)?.[0]);
  // What a test asks of a handler goes over the network.
  const ask = (request: Request) => {
    const { pathname } = new URL(request.url);
    const headers = new Headers(request.headers);
    if (headers.has('origin')) headers.set('origin', new URL(url).origin);
    const { method, body, signal } = request;
    return fetch(new URL(pathname, url), { method, headers, body, signal, duplex: 'half' } as RequestInit);
  };
  return { ...started, url, board: Object.assign(ask, { close: () => {} }) };
}

describeWithShop('fenced-lock board', () => {
  const [KEY, OTHER] = [`stock:${randomUUID()}`, `stock:${randomUUID()}`];
  const shop = new Shop();
  const admin = new pg.Client({ connectionString: inject('postgres').admin });
  afterAll(() => admin.end());

  test('serves what both servers know, and ends when it is stopped', async () => {
    const keyPrefix = `board-${randomUUID()}:`;
    const { prisma } = shop.client({ keyPrefix });
    await using handle = await prisma.$lock(KEY);
    const { url, board, code, stop, written } = await serve(keyPrefix);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    const viewer = await Viewer.look(board);
    expect(viewer.keys.get(KEY)).toMatchObject({
      token: String(handle.token),
      holder: handle.toJSON().holders[0],
    });
    expect(viewer.status).not.toHaveProperty('happened');
    expect(viewer.status?.redis).toMatchObject([{ role: 'server', status: 'ready', healthy: true }]);
    // Both are named before anybody looks, and on the page.
    expect(written.out.startsWith(askedLines())).toBe(true);
    expect(viewer.status?.postgres).toMatchObject({ address: asked().postgres, status: 'answers', healthy: true });
    await prisma.$withLock(OTHER, () => {});
    await handle.$transaction(async () => {
      await viewer.until('the transaction', () => viewer.keys.get(KEY)?.transaction);
    });
    stop();
    expect(await code).toBe(0);
    await viewer.until('the end', () => viewer.ended);
    expect(JSON.stringify(viewer.told) + written.out + written.err).not.toContain('://'.concat('postgres'));
  });

  test('connects when somebody looks, and leaves when nobody does any more', async () => {
    const { board, code, stop } = await serve(`board-${randomUUID()}:`);
    await admin.connect();
    const sessions = async () => {
      const { rows } = await admin.query(
        `SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = 'fenced-lock'
         AND datname = current_database() AND client_port = ANY($1)`,
        [await ownPorts()],
      );
      return rows[0].count as number;
    };
    // That of the test before may still be ending.
    await eventually('none is open', async () => (await sessions()) === 0);
    const viewer = await Viewer.look(board);
    expect(await sessions()).toBeGreaterThan(0);
    viewer.leave();
    await eventually('it has left', async () => (await sessions()) === 0);
    const again = await Viewer.look(board);
    expect(again.status?.trouble).toBeUndefined();
    again.leave();
    stop();
    expect(await code).toBe(0);
  });

  test('only shows, unless it is allowed more', async () => {
    const keyPrefix = `board-${randomUUID()}:`;
    const { prisma } = shop.client({ keyPrefix });
    const handle = await prisma.$lock(KEY);
    const [holder] = handle.toJSON().holders;
    const readOnly = await serve(keyPrefix);
    const first = await Viewer.look(readOnly.board);
    expect(first.status?.token).toBeUndefined();
    expect((await readOnly.board(forceRequest('', { key: KEY, holder }))).status).toBe(403);
    readOnly.stop();

    const allowed = await serve(keyPrefix, '--allow-force-release');
    const second = await Viewer.look(allowed.board);
    const { token } = second.status ?? {};
    const take = forceRequest(token, { key: KEY, holder }, { headers: { host: undefined } });
    const answer = await allowed.board(take);
    expect([answer.status, await answer.json()]).toEqual([200, { released: true }]);
    allowed.stop();
    await Promise.all([readOnly.code, allowed.code]);
  });

  test('answers no other name than those of this machine', async () => {
    const { url, code, stop } = await serve(`board-${randomUUID()}:`);
    const status = (host: string) =>
      new Promise((resolve) => request(url, { headers: { host } }, ({ statusCode }) => resolve(statusCode)).end());
    expect(await status('localhost:7070')).toBe(200);
    expect(await status('rebound.example.com')).toBe(421);
    stop();
    await code;
  });

  test.each([
    // Without the flag that names the danger.
    ['192.0.2.1', [], '--expose-without-login'],
    ['127.0.0.1.example.com', [], '--expose-without-login'],
    // A foreign page could have its own name resolve to it.
    ['::', ['--expose-without-login', '--allow-force-release'], '--allow-force-release: '],
  ])('refuses to listen at %s with %j', async (host, flags, message) => {
    const { code, written } = start(['--host', host, ...flags]);
    expect([await code, written.err]).toEqual([2, expect.stringContaining(message)]);
  });

  test('tells what cannot be reached, and goes on when it can', async () => {
    const { url, code, stop, board } = await serve('x:', '--redis-url', 'redis://127.0.0.1:1');
    const response = await board(new Request(new URL('/events', url)));
    const reader = response.body?.getReader();
    let text = '';
    const decoder = new TextDecoder();
    while (!text.includes('"trouble"')) text += decoder.decode((await reader?.read())?.value, { stream: true });
    expect(text).toContain('Redis at 127.0.0.1:1 cannot be reached');
    await reader?.cancel();
    stop();
    expect(await code).toBe(0);
  });
});

/** Of the sockets of this process, in which the command runs too. */
async function ownPorts(): Promise<number[]> {
  const sockets = (process as unknown as { _getActiveHandles(): Array<{ localPort?: number }> })._getActiveHandles();
  return sockets.flatMap(({ localPort }) => localPort ?? []);
}
