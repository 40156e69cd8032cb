import { randomUUID } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { OBJECTS_VERSION } from '../../../src/addons/board/assets.generated.js';
import { createBoard } from '../../../src/addons/board/index.js';
import { packagedScript } from '../../../src/cli/migrations/packaged.js';
import { memoryStore, StaleTokenError } from '../../../src/index.js';
import { Monitor } from '../../redis/monitor.js';
import { describeWithRedis } from '../../support/redis-suite.js';
import { refusedWrite } from '../../support/refused-write.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';
import { get, Viewer } from './viewer.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** In Postgres a key has no prefix, and other files lock there too. */
const NIGHTLY = `import:nightly:${randomUUID()}`;
let prefixes = 0;
const keyPrefix = () => `board-${process.pid}-${prefixes++}:`;

describeWithShop('who looks at the board', () => {
  const shop = new Shop();

  test('sees the key, its holder, its lease, who waits, the transaction, and what is left of it when it is free', async () => {
    const own = { keyPrefix: keyPrefix() };
    const [holder, contender] = [shop.client(own).prisma, shop.client({ ...own, name: 'web 2' }).prisma];
    const { key } = await shop.product(1);
    const first = await holder.$withLock(key, (_, lock) => lock.token);
    const board = createBoard(holder, { refreshInterval: 100 });
    const viewer = await Viewer.look(board);
    const [inside, goOn] = [gate(), gate()];
    const working = holder.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const waiting = [contender.$withLock(key, () => {}), holder.$withLock(key, () => {})];
    const seen = await viewer.until('who waits', () => {
      const found = viewer.keys.get(key);
      return found?.waiting === 1 && found.callers === 1 && found.transaction !== null && found;
    });
    const [state] = await holder.$locks.list();
    expect(seen).toMatchObject({
      key,
      holder: state?.holder,
      token: String(first),
      turns: '1',
      waiters: ['web 2'],
      transaction: { pid: state?.transaction?.pid },
    });
    expect(seen.expiresIn).toBeGreaterThan(0);
    goOn.open();
    await Promise.all([working, ...waiting]);
    await viewer.until('it is free, and had three turns more', () => {
      const found = viewer.keys.get(key);
      return found?.holder === null && found.turns === '4';
    });
    const turns = viewer.told
      .filter(({ event, data }) => event === 'keys' && !data.all)
      .flatMap(({ data }) => data.keys)
      .filter((sent) => sent.key === key)
      .map(({ bar }) => bar[0]);
    // Whatever bars they fell into.
    expect(
      turns.reduce((sum: number, count: number, at: number) => sum + Math.max(0, count - (turns[at - 1] ?? 0)), 0),
    ).toBe(3);
    viewer.leave();
  });

  test('is told at once of all that those know who came before', async () => {
    const { prisma } = shop.client({ keyPrefix: keyPrefix() });
    const board = createBoard(prisma, { refreshInterval: 100, title: 'Shop' });
    const early = await Viewer.look(board);
    await using handle = await prisma.$lock(NIGHTLY);
    // A look may see the lease before the token is registered.
    await early.until('the key', () => early.keys.get(NIGHTLY)?.token != null);
    const late = await Viewer.look(board);
    expect(late.keys.get(NIGHTLY)).toMatchObject({ token: String(handle.token), waiting: 0 });
    expect(late.keys.get(NIGHTLY)?.turnBars).toHaveLength(60);
    expect(late.hello).toEqual({ title: 'Shop', interval: 100, process: true, inMemory: false });
    early.leave();
    late.leave();
  });

  test('is sent a key again only if something has changed', async () => {
    const { prisma } = shop.client({ keyPrefix: keyPrefix() });
    await using _ = await prisma.$lock(NIGHTLY);
    const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
    const looks = () => viewer.told.filter(({ event }) => event === 'keys');
    const before = looks().length;
    await viewer.until('ten looks more', () => looks().length >= before + 10);
    // A lease that is extended, or a bar of the chart that ends, may fall between.
    const again = looks()
      .slice(before)
      .flatMap(({ data }) => data.keys);
    expect(again.length).toBeLessThanOrEqual(3);
    viewer.leave();
  });

  test('reads of the health of both servers in words', async () => {
    const viewer = await Viewer.look(createBoard(shop.client().prisma, { refreshInterval: 100 }));
    const health = await viewer.until(
      'the health',
      () => (viewer.status?.health.length ?? 0) > 0 && viewer.status?.health,
    );
    expect(health.map(({ server, status, message }) => [server, status, message.replaceAll(/[\d.]+\b/g, 'n')])).toEqual(
      [
        ['postgres', 'ok', expect.stringMatching(/^PostgreSQL n answers in n ms\.$/)],
        ['postgres', 'ok', 'The objects of fenced_lock have version n.'],
        ['redis', 'ok', expect.stringMatching(/^Redis at .* answers in n ms\.$/)],
      ],
    );
    expect(viewer.status?.redis).toEqual([
      { address: expect.stringMatching(/:\d+$/), role: 'server', status: 'ready', healthy: true },
    ]);
    expect(JSON.stringify(viewer.told)).not.toContain('://');
    viewer.leave();
  });

  test('reads which database it is, and no user of it', async () => {
    const viewer = await Viewer.look(createBoard(shop.client().prisma, { refreshInterval: 100 }));
    const { port, pathname, username } = new URL(inject('postgres').app);
    const seen = await viewer.until('the database', () => viewer.status?.postgres);
    expect(seen).toMatchObject({ status: 'answers', healthy: true });
    // The server says its address, whatever name the URL has for it.
    expect(seen.address).toMatch(new RegExp(`^(127\\.0\\.0\\.1|\\[::1\\]):${port}${pathname}$`));
    expect(seen.address).not.toContain(`${username}@`);
    viewer.leave();
  });

  test('compares the objects of the database with those of this package', async () => {
    expect(OBJECTS_VERSION).toBe((await packagedScript()).version);
  });

  test('sees waits, refused writes and events of this process, as its channels tell them', async () => {
    const { prisma } = shop.client({ keyPrefix: keyPrefix() });
    const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
    const refused = new StaleTokenError('stock:1', 5n, 'Stock', { fence: 7n });
    channel('tracing:fenced-lock:transaction:error').publish({ error: refused });
    channel('tracing:fenced-lock:transaction:error').publish({ error: new Error('of the caller') });
    channel('fenced-lock:lease-lost').publish({ type: 'lease-lost', key: 'stock:2', error: new Error('it was lost.') });
    const wait = {};
    channel('tracing:fenced-lock:wait:start').publish(wait);
    channel('tracing:fenced-lock:wait:asyncEnd').publish(wait);
    // Prisma's error of one that was thrown below it, such as the same one.
    const wrapped = Object.assign(new Error('of Prisma'), { code: 'STALE_TOKEN', meta: refused.meta });
    channel('tracing:fenced-lock:transaction:error').publish({ error: wrapped });
    const happened = await viewer.until('all of them', () => viewer.happened.length >= 3 && viewer.happened);
    const text = 'A row of Stock carries the token 7, so the write with the token 5 was refused.';
    expect(happened).toMatchObject([
      { type: 'stale-write', bad: true, key: 'stock:1', text },
      { type: 'lease-lost', bad: true, key: 'stock:2', text: 'it was lost.' },
      { type: 'stale-write', bad: true, key: 'stock:1', text },
    ]);
    // A page on the developer's disk is of no use on the board.
    expect(JSON.stringify(happened)).not.toContain('docs/');
    await viewer.until('the wait', () => viewer.status?.waits?.counts.reduce((sum, count) => sum + count, 0) === 1);
    viewer.leave();
    await viewer.until('nobody listens any more', () => !channel('fenced-lock:lease-lost').hasSubscribers);
    expect(channel('tracing:fenced-lock:wait:start').hasSubscribers).toBe(false);
  });

  test('hears of a wait and of a refused write of a real lock, which is shown and counted', async () => {
    const own = { keyPrefix: keyPrefix() };
    const [late, early] = [shop.client(own).prisma, shop.client(own).prisma];
    const { id, key } = await shop.product(10);
    const viewer = await Viewer.look(createBoard(late, { refreshInterval: 100 }));
    const error = await refusedWrite(late, early, id, key);
    const { token, fence } = error as StaleTokenError;
    const text = `A row of Stock carries the token ${fence}, so the write with the token ${token} was refused.`;
    await viewer.until('a wait', () => viewer.status?.waits?.counts.some((count) => count > 0));
    expect(await viewer.until('the refused write', () => viewer.happened[0])).toMatchObject({ key, text });
    expect(viewer.told.findLast(({ event }) => event === 'happened')?.data).toMatchObject({ refused: 1 });
    viewer.leave();
  });

  test('hears of timeouts, and of hooks and outcomes that went wrong', async () => {
    const { prisma } = shop.client({ keyPrefix: keyPrefix() });
    const { key } = await shop.product(1);
    const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
    await using _handle = await prisma.$lock(key);
    await expect(prisma.$withLock(key, () => {}, { waitTime: 20 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await prisma.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    channel('fenced-lock:hook-failed').publish({
      type: 'hook-failed',
      key,
      hook: 'afterCommit',
      error: new Error('no mail.'),
    });
    for (const outcome of ['committed', 'unknown']) channel('fenced-lock:commit-resolved').publish({ key, outcome });
    const told = await viewer.until('all', () => {
      const all = viewer.told.filter(({ event }) => event === 'happened').flatMap(({ data }) => data.happened);
      return all.length >= 4 && all;
    });
    expect(told).toMatchObject([
      { type: 'timeout', bad: true, key, text: expect.stringContaining(key) },
      { type: 'hook-failed', bad: true, key, text: 'A hook of afterCommit threw: no mail.' },
      { type: 'commit-resolved', bad: false, key },
      { type: 'commit-resolved', bad: true, key, text: expect.stringContaining('unknown') },
    ]);
    viewer.leave();
  });

  test('can ask for the last turns of a key, with the durations and errors of those since the board was opened', async () => {
    const { prisma } = shop.client({ keyPrefix: keyPrefix() });
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    const board = createBoard(prisma, { refreshInterval: 100 });
    const viewer = await Viewer.look(board);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    const failed = prisma.$withLock(key, () => {
      throw new RangeError('of the caller');
    });
    await expect(failed).rejects.toThrow(RangeError);
    const { turns } = (await (await get(board, `/history?key=${key}`)).json()) as { turns: object[] };
    expect(turns).toMatchObject([
      { outcome: 'rolled-back', error: 'RangeError', duration: expect.any(Number), process: expect.any(String) },
      { turn: '2', outcome: 'committed', token: String(token), duration: expect.any(Number), error: null },
      { turn: '1', outcome: 'committed', token: null, duration: null, process: null },
    ]);
    viewer.leave();
    await viewer.until('nobody records any more', async () => !(await prisma.$locks.history(key)).recorded);
  });

  test('of leases in the memory of the process reads that there is no Redis, and sees holders and waiters', async () => {
    const redis = memoryStore();
    const [holder, contender] = [shop.client({ redis }).prisma, shop.client({ redis }).prisma];
    const { key } = await shop.product(1);
    const handle = await holder.$lock(key);
    const waiting = contender.$withLock(key, () => {});
    const viewer = await Viewer.look(createBoard(holder, { refreshInterval: 100 }));
    await viewer.until('who waits', () => viewer.keys.get(key)?.waiting === 1);
    expect(viewer.keys.get(key)?.holder).toBe(handle.toJSON().holders[0]);
    expect(viewer.hello).toMatchObject({ inMemory: true });
    expect(viewer.status?.redis).toEqual([
      { address: 'memoryStore()', role: expect.stringContaining('No Redis'), status: 'in use', healthy: true },
    ]);
    const health = await viewer.until(
      'the health',
      () => (viewer.status?.health.length ?? 0) > 0 && viewer.status?.health,
    );
    expect(health.map(({ server, status }) => `${server} ${status}`)).toEqual([
      'postgres ok',
      'postgres ok',
      'redis ok',
    ]);
    await handle.release();
    await waiting;
    viewer.leave();
  });

  test('is left by the signal of its request, also if nobody else keeps the request', async () => {
    const viewer = await Viewer.look(createBoard(shop.client().prisma));
    // In a turn of its own: what is awaited may still be on the stack.
    await turnOfLoop();
    collectGarbage();
    viewer.leave();
    await viewer.until('the end', () => viewer.ended);
  });

  test('is closed by close(), and so is nobody else', async () => {
    const { prisma } = shop.client();
    const [board, other] = [createBoard(prisma), createBoard(prisma)];
    const [one, another] = [await Viewer.look(board), await Viewer.look(other)];
    board.close();
    await one.until('the end', () => one.ended);
    expect(another.ended).toBe(false);
    another.leave();
  });
});

describeWithRedis('a board on a Redis of its own', (redis) => {
  const shop = new Shop(() => ({
    postgres: inject('postgres').app,
    admin: inject('postgres').admin,
    redis: redis().url,
  }));

  test('asks nothing before somebody looks, the same for one as for many, and nothing when the last one has left', async () => {
    const keyPrefix = 'cost:';
    const { prisma } = shop.client({ keyPrefix });
    const handles = await Promise.all(['a', 'b', 'c'].map((key) => prisma.$lock(key)));
    const monitor = await Monitor.start(redis().url);
    const asked = async () => (await monitor.about(keyPrefix)).length;
    const before = await asked();
    const board = createBoard(prisma, { refreshInterval: 100 });
    await get(board, '/');
    await get(board, '/board.js');
    expect(await asked()).toBe(before);

    /** Commands in ten looks. */
    const costOf = async (viewer: Viewer) => {
      const looks = () => viewer.told.filter(({ event }) => event === 'keys').length;
      const from = looks();
      const [since] = [await asked()];
      await viewer.until('ten looks', () => looks() >= from + 10);
      return (await asked()) - since;
    };
    const one = await Viewer.look(board);
    const alone = await costOf(one);
    // A SCAN and three keys in each; renewals of the leases, every ten seconds, may fall between.
    expect(alone).toBeGreaterThanOrEqual(36);
    expect(alone).toBeLessThanOrEqual(52);
    const others = [await Viewer.look(board), await Viewer.look(board)];
    const together = await costOf(one);
    expect(together).toBeLessThanOrEqual(alone + 16);

    for (const viewer of [one, ...others]) viewer.leave();
    await one.until('the end', () => [one, ...others].every(({ ended }) => ended));
    const told = one.told.length;
    const left = await asked();
    await Promise.all(handles.map((handle) => handle.release()));
    await prisma.$withLock('d', () => {});
    // Long enough for two more looks.
    await new Promise((resolve) => setTimeout(resolve, 500));
    const after = (await monitor.about(keyPrefix)).slice(left);
    expect(after.filter(([verb]) => verb === 'scan')).toEqual([]);
    expect(one.told).toHaveLength(told);
    expect(channel('fenced-lock:lease-lost').hasSubscribers).toBe(false);
    monitor.stop();
  });

  test('does not call a server silent that refuses', async () => {
    const admin = shop.redis();
    await admin.call('ACL', 'SETUSER', 'board-look', 'reset', 'on', '>a-password', '~*', '&*', '+@all');
    const url = Object.assign(new URL(redis().url), { username: 'board-look', password: 'a-password' }).href;
    const client = new Redis(url);
    client.on('error', () => {});
    shop.closeLater(() => client.disconnect());
    const { prisma } = shop.client({ redis: client });
    const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
    await admin.call('ACL', 'SETUSER', 'board-look', '-scan');
    const trouble = await viewer.until('the trouble', () => viewer.status?.trouble);
    expect(trouble.text).toMatch(/NOPERM/);
    const told = viewer.told.flatMap(({ event, data }) => (event === 'status' ? data.redis : []));
    expect(told.filter(({ status }) => status === 'no answer')).toEqual([]);
    viewer.leave();
  });

  test('says that Redis is away, keeps what it knew, and goes on when it is back', async () => {
    const { prisma } = shop.client({ keyPrefix: 'away:', commandTimeout: 300 });
    await prisma.$lock(NIGHTLY);
    const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
    expect(viewer.keys.has(NIGHTLY)).toBe(true);
    await redis().freeze();
    const trouble = await viewer.until('the trouble', () => viewer.status?.trouble);
    // Its client is connected as before.
    await viewer.until('its state', () => viewer.status?.redis[0]?.healthy === false);
    expect(viewer.status?.redis).toMatchObject([{ status: 'no answer', healthy: false }]);
    expect(trouble.text).toMatch(/Redis/);
    expect(trouble.text).not.toContain('://');
    expect(viewer.keys.has(NIGHTLY)).toBe(true);
    await viewer.until('the fault', () =>
      viewer.status?.health.some(({ server, status }) => server === 'redis' && status === 'fault'),
    );
    await redis().thaw();
    await viewer.until('it is well again', () => viewer.status !== undefined && viewer.status.trouble === undefined);
    await viewer.until(
      'its state',
      () => viewer.status?.redis[0]?.status === 'ready' && viewer.status.redis[0].healthy,
    );
    viewer.leave();
  });
});
