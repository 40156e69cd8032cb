import { randomUUID } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, inject, test } from 'vitest';
import { createBoard } from '../../../src/addons/board/index.js';
import { memoryStore, type StaleTokenError } from '../../../src/index.js';
import { Monitor } from '../../redis/monitor.js';
import { describeWithRedis } from '../../support/redis-suite.js';
import { refusedWrite } from '../../support/refused-write.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';
import { get, Viewer } from './viewer.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** In Postgres a key has no prefix, and other files lock there too. */
const NIGHTLY = `import:nightly:${randomUUID()}`;
const OFTEN = { refreshInterval: 100 };
let prefixes = 0;
const keyPrefix = () => `board-${process.pid}-${prefixes++}:`;

describeWithShop('who looks at the board', () => {
  const shop = new Shop();

  test('sees the key, its holder, its lease, who waits, the transaction, and what is left of it when it is free', async () => {
    const own = { keyPrefix: keyPrefix() };
    const [holder, contender] = [shop.client(own).prisma, shop.client({ ...own, name: 'web 2' }).prisma];
    const { key } = await shop.product(1);
    const first = await holder.$withLock(key, (_, lock) => lock.token);
    const board = createBoard(holder, OFTEN);
    const viewer = await Viewer.look(board);
    const [inside, goOn] = [gate(), gate()];
    const working = holder.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const waiting = [contender.$withLock(key, () => {}), holder.$withLock(key, () => {})];
    const isWhole = (viewer: Viewer) => {
      const found = viewer.keys.get(key);
      return found?.waiting === 1 && found.callers === 1 && found.transaction && found;
    };
    const seen = await viewer.until('who waits', () => isWhole(viewer));
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
    // Who comes later is told at once of all that the other one knows.
    const late = await Viewer.look(board);
    expect({ ...isWhole(late), expiresIn: 0 }).toEqual({ ...seen, expiresIn: 0 });
    expect(late.status?.interval).toBe(100);
    late.leave();
    goOn.open();
    await Promise.all([working, ...waiting]);
    const free = await viewer.until('it is free', () => {
      const found = viewer.keys.get(key);
      return found?.holder === undefined && found?.turns === '4' && found;
    });
    expect(free.bars.reduce((sum, turns) => sum + turns, 0)).toBe(3);
    viewer.leave();
  });

  test('reads of the health of both servers in words, and which they are, without a login', async () => {
    const viewer = await Viewer.look(createBoard(shop.client().prisma, OFTEN));
    const { postgres, redis } = await viewer.until('the health', () => viewer.status?.postgres && viewer.status);
    expect(viewer.findings).toEqual(
      [
        /^PostgreSQL \d+ answers in [\d.]+ ms\.$/,
        /^The objects of fenced_lock have version \d+\.$/,
        /^Redis at .* answers in/,
      ].map((message) => ({ message: expect.stringMatching(message) })),
    );
    expect(redis).toMatchObject([
      { address: expect.stringMatching(/:\d+$/), role: 'server', status: 'ready', healthy: true },
    ]);
    const { port, pathname } = new URL(inject('postgres').app);
    expect(postgres).toMatchObject({ role: 'database', status: 'answers', healthy: true });
    // The server says its address, whatever name the URL has for it.
    expect(postgres?.address).toMatch(new RegExp(`^(127\\.0\\.0\\.1|\\[::1\\]):${port}${pathname}$`));
    expect(JSON.stringify(viewer.told)).not.toMatch(/:\/\/|@/);
    viewer.leave();
  });

  test('hears of waits, timeouts, refused writes and lost leases of this process, which are counted', async () => {
    const own = { keyPrefix: keyPrefix() };
    const [late, early] = [shop.client(own).prisma, shop.client(own).prisma];
    const { id, key } = await shop.product(10);
    const viewer = await Viewer.look(createBoard(late, OFTEN));
    const { token, fence } = (await refusedWrite(late, early, id, key)) as StaleTokenError;
    await using _handle = await late.$lock(key);
    await expect(late.$withLock(key, () => {}, { waitTime: 20 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await late.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    channel('fenced-lock:lease-lost').publish({ key, error: new Error('it was lost.') });
    const told = await viewer.until('all', () => viewer.status?.happened?.lost === 1 && viewer.status.happened);
    expect(told).toMatchObject({ timeouts: 1, refused: 1 });
    expect(told.events).toMatchObject([
      { type: 'lease-lost', bad: true, key, text: 'it was lost.' },
      { type: 'timeout', bad: true, key, text: expect.stringContaining(key) },
      {
        type: 'stale-write',
        bad: true,
        key,
        text: expect.stringMatching(`^The row of Stock .* the fencing token ${fence}, above ${token}, .*key\\.$`),
      },
    ]);
    expect(told.waits.counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(3);
    viewer.leave();
    await viewer.until('nobody listens any more', () => !channel('tracing:fenced-lock:wait:start').hasSubscribers);
  });

  test('can ask for the last turns of a key, with the durations and errors of those since the board was opened', async () => {
    const { prisma } = shop.client({ keyPrefix: keyPrefix() });
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    const board = createBoard(prisma, OFTEN);
    const viewer = await Viewer.look(board);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    const failed = prisma.$withLock(key, () => {
      throw new RangeError('of the caller');
    });
    await expect(failed).rejects.toThrow(RangeError);
    const { turns } = (await (await get(board, `/history?key=${key}`)).json()) as { turns: object[] };
    expect(turns).toMatchObject([
      { outcome: 'rolled-back', error: 'RangeError', duration: expect.any(Number), process: expect.any(String) },
      { turn: '2', outcome: 'committed', token: String(token), duration: expect.any(Number) },
      { turn: '1', outcome: 'committed' },
    ]);
    expect(turns[2]).not.toHaveProperty('duration');
    viewer.leave();
    await viewer.until('nobody records any more', async () => !(await prisma.$locks.history(key)).recorded);
  });

  test('of leases in the memory of the process reads that there is no Redis, and sees holders and waiters', async () => {
    const redis = memoryStore();
    const [holder, contender] = [shop.client({ redis }).prisma, shop.client({ redis }).prisma];
    const { key } = await shop.product(1);
    const handle = await holder.$lock(key);
    const waiting = contender.$withLock(key, () => {});
    const viewer = await Viewer.look(createBoard(holder, OFTEN));
    await viewer.until('who waits', () => viewer.keys.get(key)?.waiting === 1);
    expect(viewer.keys.get(key)?.holder).toBe(handle.toJSON().holders[0]);
    expect(viewer.status?.redis).toMatchObject([
      { address: 'memoryStore()', role: expect.stringContaining('No Redis') },
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
    const board = createBoard(prisma, OFTEN);
    await get(board, '/');
    await get(board, '/board.js');
    expect(await asked()).toBe(before);

    /** Commands in ten looks. */
    const costOf = async (viewer: Viewer) => {
      const looks = () => viewer.told.filter(({ event }) => event === 'keys').length;
      const from = looks();
      const since = await asked();
      await viewer.until('ten looks', () => looks() >= from + 10);
      return (await asked()) - since;
    };
    const one = await Viewer.look(board);
    const alone = await costOf(one);
    // A SCAN and three keys in each; renewals of the leases, every ten seconds, may fall between.
    expect(alone).toBeGreaterThanOrEqual(36);
    expect(alone).toBeLessThanOrEqual(52);
    const others = [await Viewer.look(board), await Viewer.look(board)];
    expect(await costOf(one)).toBeLessThanOrEqual(alone + 16);

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
    monitor.stop();
  });

  test('says that Redis is away, keeps what it knew, and goes on when it is back', async () => {
    const { prisma } = shop.client({ keyPrefix: 'away:', commandTimeout: 300 });
    await prisma.$lock(NIGHTLY);
    const viewer = await Viewer.look(createBoard(prisma, OFTEN));
    await redis().freeze();
    expect(await viewer.until('the trouble', () => viewer.status?.trouble)).toMatch(/Redis/);
    // Its client is connected as before.
    await viewer.until('its state', () => viewer.status?.redis[0]?.healthy === false);
    expect(viewer.status?.redis).toMatchObject([
      {
        status: 'no answer',
        findings: [{ message: expect.stringMatching(/^Redis at .* cannot be asked/), remedy: expect.any(String) }],
      },
    ]);
    expect(viewer.keys.get(NIGHTLY)?.holder).toBeTruthy();
    await redis().thaw();
    await viewer.until('it is well again', () => viewer.status?.redis[0]?.healthy && !viewer.status.trouble);
    expect(JSON.stringify(viewer.told)).not.toContain('://');
    viewer.leave();
  });
});
