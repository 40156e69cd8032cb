import { channel } from 'node:diagnostics_channel';
import { expect, test } from 'vitest';
import { createBoard } from '../../../src/addons/board/index.js';
import { InvalidOptionError } from '../../../src/index.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { forceRequest, get, Viewer } from './viewer.js';

describeWithShop('the board', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('serves its page with all that it names, and loads nothing from elsewhere', async () => {
    const board = createBoard(prisma);
    const page = await get(board, '/');
    const html = await page.text();
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    // The policy would forbid it.
    expect(html).not.toMatch(/<style|style=|\son\w+="|<script(?![^>]*src=)/);
    const files = new Set([...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, file = '']) => file));
    // What is found on the way is looked at, too.
    for (const file of files) {
      const answer = await get(board, `/${file}`);
      expect([file, answer.status]).toEqual([file, 200]);
      const text = await answer.text();
      // The namespaces of SVG are names; nothing is loaded from there.
      expect(text.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:\/\/|url\(/);
      for (const [, imported = ''] of text.matchAll(/from '\.\/([^']+)'/g)) files.add(imported);
    }
    expect([...files]).toEqual(expect.arrayContaining(['board.css', 'icon.svg', 'board.js', 'state.js']));
  });

  test.each(['/', '/board.js', '/nothing', '/events', '/history?key=a', '/force-release'])(
    'allows no script, style, frame or request but its own: %s',
    async (path) => {
      const board = createBoard(prisma);
      const { headers } = await get(board, path);
      board.close();
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(policy).not.toMatch(/unsafe|data:|\*/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('cache-control')).toContain('no-store');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
      expect(headers.get('access-control-allow-origin')).toBeNull();
    },
  );

  test('is served below its base path alone, with links that hold behind a proxy that takes the path off', async () => {
    const board = createBoard(prisma, { basePath: '/admin/locks' });
    const statuses = (paths: string[]) => Promise.all(paths.map(async (path) => (await get(board, path)).status));
    expect(await statuses(['/admin/locks', '/admin/locks/', '/admin/locks/board.js'])).toEqual([200, 200, 200]);
    const outside = ['/', '/board.js', '/admin/', '/admin/locks2/board.js', '/admin/locks2board.js', '/events'];
    const around = ['/../../board.js', '/%2e%2e/board.js', '//board.js', '/board.html', '/__proto__', '/BOARD.JS'];
    const wrong = [...outside, ...around.map((path) => `/admin/locks${path}`)];
    expect(await statuses(wrong)).toEqual(wrong.map(() => 404));
    expect(await (await get(board, '/admin/locks')).text()).toContain('src="locks/board.js"');
    expect(await (await get(board, '/admin/locks/')).text()).toContain('src="board.js"');
  });

  test('shows a title as text, whatever is in it', async () => {
    const board = createBoard(prisma, { title: '</title><script>alert("1")</script> & more' });
    const html = await (await get(board, '/')).text();
    expect(html).not.toContain('<script>');
    expect(html).toContain('&#60;script&#62;');
  });

  test.each([
    ['basePath', { basePath: 'locks' }],
    ['basePath', { basePath: '/locks/' }],
    ['basePath', { basePath: '/a/../b' }],
    ['basePath', { basePath: '/"><script>' }],
    ['refreshInterval', { refreshInterval: 5 }],
    ['title', { title: ' ' }],
    ['origin', { origin: 'https://ops.example.com/locks' }],
    ['allowForceRelease', { allowForceRelease: 'yes' as never }],
    ['hosts', { hosts: 'localhost' as never }],
    ['hosts', { hosts: ['localhost:3000'] }],
    ['hosts', { hosts: ['::1'] }],
    // Any page whose name leads to the server could take keys.
    ['allowForceRelease', { allowForceRelease: true }],
    ['path', { path: '/locks' } as never],
  ])('refuses what is no %s: %j', (name, options) => {
    expect(() => createBoard(prisma, options)).toThrow(InvalidOptionError);
    expect(() => createBoard(prisma, options)).toThrow(`\`${name}\``);
  });

  test('refuses a client without locks', () => {
    for (const none of [shop.client().plain, undefined]) {
      expect(() => createBoard(none as never)).toThrow(InvalidOptionError);
    }
  });

  test('answers other methods with the one that it has, and pages of other sites with nothing', async () => {
    const board = createBoard(prisma);
    const ask = (path: string, method: string) => board(new Request(`http://board.test${path}`, { method }));
    for (const path of ['/', '/board.js', '/events', '/history?key=a']) {
      expect((await ask(path, 'POST')).headers.get('allow')).toBe('GET, HEAD');
      const head = await ask(path, 'HEAD');
      // It is no viewer.
      expect(channel('tracing:fenced-lock:wait:start').hasSubscribers).toBe(false);
      const whole = await ask(path, 'GET');
      expect([head.status, [...head.headers], head.body]).toEqual([200, [...whole.headers], null]);
      await whole.body?.cancel();
    }
    expect((await ask('/force-release', 'HEAD')).status).toBe(405);
    expect((await ask('/force-release', 'GET')).headers.get('allow')).toBe('POST');
    for (const site of ['cross-site', 'same-site']) {
      expect((await get(board, '/events', { 'sec-fetch-site': site })).status).toBe(403);
      expect((await get(board, '/history?key=a', { 'sec-fetch-site': site })).status).toBe(403);
    }
  });

  test('tells the last turns of a key, also of one that nobody ever had, and refuses what is no key', async () => {
    const { key } = await shop.product(1);
    const board = createBoard(prisma);
    const ask = async (given: string) => {
      const answer = await get(board, `/history?key=${encodeURIComponent(given)}`);
      return [answer.status, await answer.json()];
    };
    expect(await ask(key)).toEqual([200, { turns: [] }]);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    const turn = { turn: '1', token: String(token), admittedAt: expect.any(String), outcome: 'committed' };
    expect(await ask(key)).toEqual([200, { turns: [expect.objectContaining(turn)] }]);
    for (const none of ['', 'a\0', 'k'.repeat(513)]) expect((await ask(none))[0]).toBe(400);
  });

  test('answers no name but those that it was given', async () => {
    const board = createBoard(prisma, { hosts: ['LocalHost', '127.0.0.1', '[::1]'] });
    const asked = async (host: string) => (await get(board, '/', { host })).status;
    for (const host of ['localhost:3000', '[::1]:3000', 'LOCALHOST'])
      expect([host, await asked(host)]).toEqual([host, 200]);
    for (const host of ['rebound.example.com:3000', 'localhost.example.com']) expect(await asked(host)).toBe(421);
  });
});

describeWithShop('a force release from the board', () => {
  const shop = new Shop();

  async function held(options: Parameters<typeof createBoard>[1] = { allowForceRelease: true, hosts: ['board.test'] }) {
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    const handle = await prisma.$lock(key);
    const [holder = ''] = handle.toJSON().holders;
    const board = createBoard(prisma, options);
    const viewer = await Viewer.look(board);
    viewer.leave();
    const isHeld = async () => (await prisma.$locks.inspect(key)).holder === holder;
    const force = async (body: unknown = { key, holder }, headers: Record<string, string | undefined> = {}) => {
      const answer = await board(forceRequest(viewer.status?.token, body, { headers }));
      return [answer.status, await answer.json().catch(() => undefined)];
    };
    return { prisma, key, holder, token: viewer.status?.token, isHeld, handle, force };
  }

  test('takes the key from the holder that was shown, and says that it is free where that one has left', async () => {
    const { force, handle, prisma, key } = await held();
    expect(await force()).toEqual([200, { released: true }]);
    await expect(handle.$transaction(() => {})).rejects.toMatchObject({ code: expect.stringMatching(/LOST|STALE/) });
    expect((await prisma.$locks.inspect(key)).holder).toBeUndefined();
    expect(await force()).toEqual([200, { released: false }]);
  });

  test('is refused where the board only shows, whatever is sent for a token', async () => {
    const { force, token, isHeld } = await held({});
    expect(token).toBeUndefined();
    for (const guess of ['', 'undefined', 'null']) {
      const only = { error: expect.stringContaining('only shows') };
      expect(await force(undefined, { 'x-fenced-lock-board': guess })).toEqual([403, only]);
    }
    expect(await isHeld()).toBe(true);
  });

  test('is refused if it does not come from the page', async () => {
    const [{ force, isHeld }, another] = [await held(), await held()];
    const forged: Record<string, Record<string, string | undefined>> = {
      'without a token': { 'x-fenced-lock-board': undefined },
      'with the token of another process': { 'x-fenced-lock-board': another.token },
      'from another origin': { origin: 'https://evil.example' },
      'from another port': { origin: 'http://board.test:81' },
      'from a name that ends alike': { origin: 'http://evilboard.test' },
      'from nowhere': { origin: 'null' },
      'without an origin': { origin: undefined },
      'as a form': { 'content-type': 'text/plain' },
      'from another site': { 'sec-fetch-site': 'cross-site' },
    };
    for (const [what, headers] of Object.entries(forged)) {
      expect([what, (await force(undefined, headers))[0]]).toEqual([what, 403]);
    }
    expect(await isHeld()).toBe(true);
  });

  test('is let through from the origin that a proxy serves, where that was given, and from no other', async () => {
    const { force } = await held({ allowForceRelease: true, origin: 'https://ops.example.com' });
    expect((await force())[0]).toBe(403);
    expect(await force(undefined, { origin: 'https://ops.example.com' })).toEqual([200, { released: true }]);
  });

  test.each([
    ['board.test:80', 'http://board.test', 'https://board.test'],
    ['board.test:443', 'https://board.test', 'http://board.test'],
  ])('is let through at %s from %s, whose port is the same, and not from %s', async (host, origin, other) => {
    const { force } = await held();
    expect((await force(undefined, { host, origin: other }))[0]).toBe(403);
    expect(await force(undefined, { host, origin })).toEqual([200, { released: true }]);
  });

  test('is refused where another one has the key by now', async () => {
    const { force, key, isHeld } = await held();
    for (const holder of [null, '4f1c3f0e-9d3f-4f43-8f0c-0b8d7a5f2d11']) {
      expect(await force({ key, holder })).toEqual([409, { error: expect.stringContaining('held by another now') }]);
    }
    expect(await isHeld()).toBe(true);
  });

  test('leaves the next holder alone that gets the key in the moment of the request', async () => {
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    const shown = await prisma.$lock(key);
    const waiting = shop.client().prisma.$lock(key);
    const forceRelease: typeof prisma.$locks.forceRelease = async (...given) => {
      await shown.release();
      await waiting;
      return await prisma.$locks.forceRelease(...given);
    };
    const $locks = Object.create(prisma.$locks, { forceRelease: { value: forceRelease } });
    const board = createBoard({ $locks }, { allowForceRelease: true, hosts: ['board.test'] });
    const viewer = await Viewer.look(board);
    viewer.leave();
    const [holder] = shown.toJSON().holders;
    expect((await board(forceRequest(viewer.status?.token, { key, holder }))).status).toBe(409);
    await using next = await waiting;
    await next.$transaction((tx) => tx.stock.count());
    expect((await prisma.$locks.inspect(key)).holder).toBe(next.toJSON().holders[0]);
  });

  test('is refused if its body is not what the page sends', async () => {
    const { force, key, holder, isHeld } = await held();
    const bodies = ['', '{', 'null', { key }, { key: 7, holder }, { key: '', holder }, { key: 'a\0', holder }];
    for (const body of [...bodies, { key, holder: 7 }]) expect([body, (await force(body))[0]]).toEqual([body, 400]);
    expect(await isHeld()).toBe(true);
  });
});
