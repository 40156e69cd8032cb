import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { createBoard } from '../../../src/addons/board/index.js';
import { fencedLocks } from '../../../src/faces/pg.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { describeWithRedis } from '../../support/redis-suite.js';
import { gate, Shop } from '../../support/shop.js';
import { forceRequest, get, Viewer } from './viewer.js';

/** What a user of Redis may do that changes nothing: a script is one command, and each command in it is checked, too. */
const READER = ['reset', 'on', '>password', '~*', '&*', '+@read', '+@connection', '+eval', '+evalsha', '+info'];

describeWithRedis('a board', (redis) => {
  const shop = new Shop(() => ({
    postgres: inject('postgres').app,
    admin: inject('postgres').admin,
    redis: redis().url,
  }));

  /** A client whose every session of Postgres is read-only. There, a statement that would lock a row is refused. */
  function reader(keyPrefix: string, url: URL) {
    url.username = 'reader';
    url.password = 'password';
    const client = new Redis(url.href, { enableReadyCheck: false });
    shop.closeLater(() => client.disconnect());
    return shop.client({ keyPrefix, redis: client, pool: { options: '-c default_transaction_read_only=on' } }).prisma;
  }

  test('shows the locks that fencedLocks has made, and refuses what has none', async () => {
    const locks = fencedLocks({ pool: shop.pool(), redis: shop.redis(), keyPrefix: `pool-${randomUUID()}:` });
    shop.closeLater(() => locks.close());
    const { key } = await shop.product(1);
    const board = createBoard(locks, { allowForceRelease: true, hosts: ['board.test'], refreshInterval: 100 });
    const viewer = await Viewer.look(board);
    await locks.lock(key);
    const { holder } = await viewer.until('the key', () => viewer.keys.get(key));
    expect((await board(forceRequest(viewer.status?.token, { key, holder }))).status).toBe(200);
    await viewer.until('it was taken', () => viewer.keys.get(key)?.holder !== holder);
    viewer.leave();
    const none = { locks: {} } as unknown as Parameters<typeof createBoard>[0];
    expect(() => createBoard(none)).toThrow('what fencedLocks gave');
  });

  test('needs no right to write in either server, so it takes no lock and holds nobody up', async () => {
    const keyPrefix = `reads-${randomUUID()}:`;
    const admin = shop.redis();
    await admin.call('ACL', 'SETUSER', 'reader', ...READER);
    const prisma = reader(keyPrefix, new URL(redis().url));
    const [holder, contender] = [shop.client({ keyPrefix }).prisma, shop.client({ keyPrefix }).prisma];
    const { key } = await shop.product(1);
    await holder.$withLock(key, () => {});
    const [inside, goOn] = [gate(), gate()];
    const working = holder.$withLock(key, async (tx) => {
      await tx.$queryRaw`SELECT 1`;
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const waiting = contender.$withLock(key, () => {});
    const board = createBoard(prisma, { allowForceRelease: true, hosts: ['board.test'], refreshInterval: 100 });
    const viewer = await Viewer.look(board);
    const seen = await viewer.until('all of it', () => {
      const found = viewer.keys.get(key);
      return found?.waiting === 1 && found.transaction && found;
    });
    const { turns } = (await (await get(board, `/history?key=${key}`)).json()) as { turns: object[] };
    expect([seen.turns, turns.length]).toEqual(['1', 1]);
    await viewer.until('the health', () => viewer.findings.length === 3);
    expect(viewer.findings.filter(({ remedy }) => remedy)).toEqual([]);
    // And that user and those sessions may not do more (control).
    const body = { key, holder: seen.holder };
    expect((await board(forceRequest(viewer.status?.token, body))).status).toBe(502);
    goOn.open();
    await Promise.all([working, waiting]);
    viewer.leave();
  });

  test('says that Postgres is away, keeps what it knew, and goes on when it is back', async () => {
    const { hostname: host, port } = new URL(inject('postgres').app);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    shop.closeLater(() => proxy.close());
    const connectionString = proxy.url(inject('postgres').app);
    const { prisma } = shop.client({ keyPrefix: `away-${randomUUID()}:`, pool: { connectionString } });
    const { key } = await shop.product(1);
    await using _handle = await prisma.$lock(key);
    const viewer = await Viewer.look(createBoard(prisma, { refreshInterval: 100 }));
    const isIll = () => viewer.status?.postgres?.healthy === false;
    for (const fault of ['refuse', 'silence'] as const) {
      if (fault === 'silence') proxy.silence();
      else await proxy.refuse().then(() => proxy.reset());
      await viewer.until(`the trouble of ${fault}`, () => viewer.status?.trouble);
      await viewer.until(`the fault of ${fault}`, isIll);
      expect(viewer.keys.get(key)?.holder).toBeTruthy();
      expect(viewer.status?.seenAt).toBeLessThan(Date.now());
      if (fault === 'silence') proxy.resume();
      else await proxy.refuse(false);
      await viewer.until(`it is well after ${fault}`, () => viewer.status !== undefined && !viewer.status.trouble);
      await viewer.until(`so is its health after ${fault}`, () => !isIll());
    }
    const told = JSON.stringify(viewer.told);
    expect(told).not.toMatch(/:\/\/|password/);
    viewer.leave();
  });
});
