import { expect, test } from 'vitest';
import { createBoard } from '../../../src/addons/board/index.js';
import { InvalidOptionError } from '../../../src/index.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { forceRequest, get, Viewer } from './viewer.js';

const FILES = [
  'board.css',
  'board.js',
  'text.js',
  'words.js',
  'state.js',
  'chart.js',
  'keys.js',
  'details.js',
  'panels.js',
  'icon.svg',
];

describeWithShop('the board', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('serves its page and every file that the page names, and loads nothing from elsewhere', async () => {
    const board = createBoard(prisma);
    const page = await get(board, '/');
    const html = await page.text();
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const named = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map((match) => match[1] ?? '');
    expect(named.toSorted()).toEqual(['board.css', 'board.js', 'icon.svg']);
    // The policy would forbid it.
    expect(html).not.toMatch(/<style|style=|\son\w+="|<script(?![^>]*src=)/);
    for (const file of FILES) {
      const answer = await get(board, `/${file}`);
      expect([file, answer.status]).toEqual([file, 200]);
      const text = await answer.text();
      // The namespaces of SVG are names; nothing is loaded from there.
      expect(text.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:\/\/|url\(/);
      for (const [, from] of text.matchAll(/from '\.\/([^']+)'/g)) expect(FILES).toContain(from);
    }
  });

  test.each(['/', '/board.js', '/board.css', '/nothing', '/events', '/history?key=a', '/force-release'])(
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
    const statuses = async (...paths: string[]) =>
      Promise.all(paths.map(async (path) => (await get(board, path)).status));
    expect(await statuses('/admin/locks', '/admin/locks/', '/admin/locks/board.js')).toEqual([200, 200, 200]);
    const outside = [
      '/',
      '/board.js',
      '/admin/',
      '/admin/locks2/board.js',
      '/admin/locks2board.js',
      '/events',
      '/history',
    ];
    const around = ['/../../board.js', '/%2e%2e/board.js', '//board.js', '/board.html', '/__proto__', '/BOARD.JS'];
    const wrong = [...outside, ...around.map((path) => `/admin/locks${path}`)];
    expect(await statuses(...wrong)).toEqual(wrong.map(() => 404));
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
    const { plain } = shop.client();
    expect(() => createBoard(plain as never)).toThrow(InvalidOptionError);
    expect(() => createBoard(undefined as never)).toThrow(InvalidOptionError);
  });

  test('answers other methods with those that it has', async () => {
    const board = createBoard(prisma);
    const ask = (path: string, method: string) => board(new Request(`http://board.test${path}`, { method }));
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect((await ask('/', method)).status).toBe(405);
      expect((await ask('/events', method)).status).toBe(405);
    }
    expect((await ask('/force-release', 'GET')).status).toBe(405);
    const head = await ask('/', 'HEAD');
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test('does not let a page of another site have the servers asked', async () => {
    const board = createBoard(prisma);
    for (const site of ['cross-site', 'same-site']) {
      expect((await get(board, '/events', { 'sec-fetch-site': site })).status).toBe(403);
      expect((await get(board, '/history?key=a', { 'sec-fetch-site': site })).status).toBe(403);
    }
  });

  test('tells the last turns of a key, also of one that nobody ever had, and refuses what is no key', async () => {
    const { key } = await shop.product(1);
    const board = createBoard(prisma, { basePath: '/locks' });
    const ask = async (given: string) => {
      const answer = await get(board, `/locks/history?key=${encodeURIComponent(given)}`);
      return [answer.status, await answer.json()];
    };
    expect(await ask(key)).toEqual([200, { turns: [] }]);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    const nothing = { duration: null, process: null, error: null };
    expect(await ask(key)).toEqual([
      200,
      {
        turns: [{ turn: '1', token: String(token), admittedAt: expect.any(String), outcome: 'committed', ...nothing }],
      },
    ]);
    for (const none of ['', 'a\0', 'k'.repeat(513)]) expect((await ask(none))[0]).toBe(400);
    expect((await get(board, '/locks/history')).status).toBe(400);
    expect((await get(board, '/history?key=a')).status).toBe(404);
    expect((await board(new Request('http://board.test/locks/history?key=a', { method: 'POST' }))).status).toBe(405);
  });

  test('answers no name but those that it was given', async () => {
    const board = createBoard(prisma, { hosts: ['LocalHost', '127.0.0.1', '[::1]'] });
    const asked = async (host: string) => (await get(board, '/', { host })).status;
    expect(await asked('localhost:3000')).toBe(200);
    expect(await asked('[::1]:3000')).toBe(200);
    expect(await asked('LOCALHOST')).toBe(200);
    expect(await asked('rebound.example.com:3000')).toBe(421);
    expect(await asked('localhost.example.com')).toBe(421);
  });
});

describeWithShop('a force release from the board', () => {
  const shop = new Shop();

  async function held(options: Parameters<typeof createBoard>[1] = { allowForceRelease: true, hosts: ['board.test'] }) {
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    const handle = await prisma.$lock(key);
    const [holder] = handle.toJSON().holders;
    const board = createBoard(prisma, options);
    const viewer = await Viewer.look(board);
    viewer.leave();
    const isHeld = async () => (await prisma.$locks.inspect(key)).holder === holder;
    return { prisma, key, holder: holder as string, board, token: viewer.hello?.token, isHeld, handle };
  }

  test('takes the key from the holder that the page showed', async () => {
    const { board, key, holder, token, isHeld, handle } = await held();
    const answer = await board(forceRequest(token, { key, holder }));
    expect([answer.status, await answer.json()]).toEqual([200, { released: true }]);
    expect(await isHeld()).toBe(false);
    await expect(handle.$transaction(async () => {})).rejects.toMatchObject({
      code: expect.stringMatching(/LOST|STALE/),
    });
  });

  test('is refused by a board that only shows, which is the default', async () => {
    const { board, key, holder, token, isHeld } = await held({});
    expect(token).toBeUndefined();
    for (const guess of ['', 'undefined', 'null']) {
      const answer = await board(forceRequest(guess, { key, holder }));
      expect([answer.status, await answer.json()]).toEqual([403, { error: expect.stringContaining('only shows') }]);
    }
    expect(await isHeld()).toBe(true);
  });

  test('is refused if it does not come from the page', async () => {
    const { board, key, holder, token, isHeld } = await held();
    const { token: ofAnother } = await held();
    const headed = (headers: Record<string, string | undefined>) => forceRequest(token, { key, holder }, { headers });
    const forged: Array<[string, Request]> = [
      ['without a token', forceRequest(undefined, { key, holder })],
      ['with the token of another process', forceRequest(ofAnother, { key, holder })],
      ['from another origin', headed({ origin: 'https://evil.example' })],
      ['from another port', headed({ origin: 'http://board.test:81' })],
      ['from a name that ends alike', headed({ origin: 'http://evilboard.test' })],
      ['from nowhere', headed({ origin: 'null' })],
      ['without an origin', headed({ origin: undefined })],
      ['as a form', headed({ 'content-type': 'text/plain' })],
      ['from another site', headed({ 'sec-fetch-site': 'cross-site' })],
      ['typed into the bar', headed({ 'sec-fetch-site': 'none' })],
    ];
    for (const [what, request] of forged) expect([what, (await board(request)).status]).toEqual([what, 403]);
    expect(await isHeld()).toBe(true);
  });

  test('is let through from the origin that a proxy serves, where that was given, and from no other', async () => {
    const { board, key, holder, token } = await held({ allowForceRelease: true, origin: 'https://ops.example.com' });
    expect((await board(forceRequest(token, { key, holder }))).status).toBe(403);
    const through = forceRequest(token, { key, holder }, { headers: { origin: 'https://ops.example.com' } });
    expect((await board(through)).status).toBe(200);
  });

  test('is refused where another one has the key by now', async () => {
    const { board, key, token, isHeld } = await held();
    for (const holder of [null, '4f1c3f0e-9d3f-4f43-8f0c-0b8d7a5f2d11']) {
      expect((await board(forceRequest(token, { key, holder }))).status).toBe(409);
    }
    expect(await isHeld()).toBe(true);
  });

  test('leaves the next holder alone that gets the key in the moment of the request', async () => {
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    const shown = await prisma.$lock(key);
    const waiting = shop.client().prisma.$lock(key);
    const takes = <A extends unknown[], R>(ask: (...given: A) => Promise<R>) => {
      return async (...given: A) => {
        await shown.release();
        await waiting;
        return await ask(...given);
      };
    };
    const locks = Object.create(prisma.$locks, { forceRelease: { value: takes(prisma.$locks.forceRelease) } });
    const board = createBoard({ $locks: locks }, { allowForceRelease: true, hosts: ['board.test'] });
    const viewer = await Viewer.look(board);
    viewer.leave();
    const [holder] = shown.toJSON().holders;
    const answer = await board(forceRequest(viewer.hello?.token, { key, holder }));
    expect([answer.status, await answer.json()]).toEqual([
      409,
      { error: expect.stringContaining('held by another now') },
    ]);
    await using next = await waiting;
    await next.$transaction((tx) => tx.stock.count());
    expect((await prisma.$locks.inspect(key)).holder).toBe(next.toJSON().holders[0]);
  });

  test('says that the key is free where its holder has left', async () => {
    const { board, key, holder, token, handle } = await held();
    await handle.release();
    const answer = await board(forceRequest(token, { key, holder }));
    expect([answer.status, await answer.json()]).toEqual([200, { released: false }]);
  });

  test('is refused if its body is not what the page sends', async () => {
    const { board, key, holder, token, isHeld } = await held();
    const bodies = ['', '{', 'null', { key }, { key: 7, holder }, { key: '', holder }, { key: 'a\0', holder }];
    for (const body of [...bodies, { key, holder: 7 }, { key, holder, more: 'x'.repeat(10_000) }]) {
      expect([body, (await board(forceRequest(token, body))).status]).toEqual([body, 400]);
    }
    expect(await isHeld()).toBe(true);
  });
});
