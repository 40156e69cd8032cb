import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, inject, onTestFinished, test } from 'vitest';
import { recordLockHistory, TransactionAbortedError } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { proxied, proxyTo } from '../support/proxied.js';
import { freePort } from '../support/servers/index.js';
import { atWork, describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

const LEASE = 30_000;

describeWithShop('$locks.inspect', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const operator = shop.client().prisma.$locks;

  test('of a key that nobody ever had says that there is nothing', async () => {
    const { key } = await shop.product(1);
    expect(await operator.inspect(key)).toEqual({
      key,
      holder: undefined,
      expiresIn: 0,
      waiting: 0,
      waiters: [],
      token: undefined,
      turns: 0n,
      admittedAt: undefined,
      transaction: undefined,
    });
  });

  test('of one that is held shows the lease, who waits, the last token that stands, and the transaction at work', async () => {
    const { key } = await shop.product(1);
    const before = await prisma.$withLock(key, (_, lock) => lock.token);
    const inside = gate<number>();
    const goOn = gate();
    const held = prisma.$withLock(key, async (tx) => {
      const [own] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
      inside.open(own.pid);
      await goOn.opened;
    });
    const pid = await inside.opened;
    const contenders = [shop.client().prisma, shop.client().prisma].flatMap((contender) => [
      contender.$withLock(key, () => {}),
      contender.$withLock(key, () => {}),
    ]);
    const state = await eventually('two processes wait', async () => {
      const found = await operator.inspect(key);
      return found.waiting === 2 && found;
    });
    expect(state).toMatchObject({ token: before, turns: 1n, transaction: { pid } });
    expect(state.holder).toMatch(/^[0-9a-f-]{36}$/);
    expect(state.expiresIn).toBeGreaterThan(0);
    expect(state.expiresIn).toBeLessThanOrEqual(LEASE);
    expect(state.transaction?.since).toBeInstanceOf(Date);
    goOn.open();
    await Promise.all([held, ...contenders]);
    expect(await operator.inspect(key)).toMatchObject({ turns: 6n, transaction: undefined });
  });

  test('of one that a handle has shows its token and its holder, and no transaction while none runs', async () => {
    const { key } = await shop.product(1);
    const lock = await prisma.$lock(key);
    const [holder] = lock.toJSON().holders;
    expect(await operator.inspect(key)).toMatchObject({ holder, token: lock.token, turns: 1n, transaction: undefined });
    await lock.$transaction(async () => {
      expect(await operator.inspect(key)).toMatchObject({ holder, transaction: { pid: expect.any(Number) } });
    });
    await lock.release();
  });

  test('says that Postgres is not there, as list and history do', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client({ pool: { connectionString: `postgresql://a:b@127.0.0.1:${await freePort()}/c` } });
    // Without a key in use, list needs no row of Postgres.
    const held = await shop.client().prisma.$lock(key);
    const unavailable = {
      code: 'LOCK_UNAVAILABLE',
      message: expect.stringContaining('Postgres gave no usable answer'),
    };
    await expect(prisma.$locks.inspect(key)).rejects.toMatchObject({ ...unavailable, key });
    await expect(prisma.$locks.history(key)).rejects.toMatchObject({ ...unavailable, key });
    await expect(prisma.$locks.list()).rejects.toMatchObject(unavailable);
    await held.release();
  });
});

describeWithShop('$locks.list', () => {
  const shop = new Shop();

  const HOSTILE = [
    'a}b',
    '}',
    '{}',
    '{a}:b}',
    'x:lease',
    ':',
    '*',
    'a*b?c[d]e\\f',
    'two\nlines\r\n',
    '😀 ｡',
    'z'.repeat(512),
  ];

  test('shows every key that is held, however it is called, also where ioredis has a keyPrefix', async () => {
    const [own, keyPrefix] = ['app[*]?\\', `${randomUUID()}[*?]\\:`];
    const redis = new Redis(inject('redis').url as string, { keyPrefix: own });
    shop.closeLater(() => redis.disconnect());
    const { prisma } = shop.client({ redis, keyPrefix, unsetKeyParts: 'allow' });
    // The rows in Postgres are everybody's: only one test at a time has these keys.
    const lock = await prisma.$lock(HOSTILE);
    const { holders, tokens } = lock.toJSON();
    const states = await prisma.$locks.list();
    const expected = lock.keys.map((key, index) => ({
      key,
      holder: holders[index],
      token: BigInt(tokens[index] as string),
    }));
    const byKey = (one: { key: string }, other: { key: string }) => (one.key < other.key ? -1 : 1);
    expect(states.map(({ key, holder, token }) => ({ key, holder, token })).toSorted(byKey)).toEqual(
      expected.toSorted(byKey),
    );
    await lock.release();
    await eventually('nothing is held', async () => (await prisma.$locks.list()).length === 0);
  });
});

describeWithShop('$locks.forceRelease', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const operator = shop.client().prisma.$locks;

  test('ends the transaction of a holder that is frozen: its write never lands, and the next one goes on', async () => {
    const { id, key } = await shop.product(10);
    const { app } = inject('postgres');
    const args = [app, inject('redis').url as string, key, String(id), 'idle', String(LEASE)];
    const worker = startWorker(new URL('../promises/holder.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    await worker.next('inside');
    worker.freeze();
    const next = prisma.$withLock(key, (tx) =>
      tx.stock.update({ where: { id }, data: { quantity: { decrement: 3 } } }),
    );
    await shop.queued(key);
    expect(await operator.forceRelease(key)).toBe(true);
    expect((await next).quantity).toBe(7);
    worker.thaw();
    worker.send({ type: 'go on' });
    await worker.exited;
    expect((await shop.row(id))?.quantity).toBe(7);
  });

  test('makes the next write of a handle stale, and lets who waits for it go on', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key, { leaseTime: LEASE });
    await lock.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    const waiting = shop.client().prisma.$withLock(key, (_, { token }) => token);
    await shop.queued(key);
    expect(await operator.forceRelease(key)).toBe(true);
    expect((await operator.inspect(key)).token).toBeGreaterThan(lock.token);
    const late = lock.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 0 } }));
    await expect(late).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded', key });
    expect(await waiting).toBeGreaterThan(lock.token);
    expect((await shop.row(id))?.quantity).toBe(9);
    await lock.release();
  });

  test('of a key that nobody has says so, and the key is as it was', async () => {
    const { key } = await shop.product(10);
    expect(await operator.forceRelease(key)).toBe(false);
    const token = await prisma.$withLock(key, (_, lock) => lock.token);
    await eventually('it is free', async () => (await operator.inspect(key)).holder === undefined);
    expect(await operator.forceRelease(key)).toBe(false);
    expect(await prisma.$withLock(key, (_, lock) => lock.token)).toBeGreaterThan(token);
  });

  test('of the holder that was seen leaves a later holder alone', async () => {
    const { key } = await shop.product(10);
    const left = await prisma.$lock(key, { leaseTime: LEASE });
    const seen = await operator.inspect(key);
    await left.release();
    await eventually('it is free', async () => (await operator.inspect(key)).holder === undefined);
    const free = await operator.inspect(key);
    await using bystander = await prisma.$lock(key, { leaseTime: LEASE });
    expect(await operator.forceRelease(key, seen)).toBe(false);
    expect(await operator.forceRelease(key, free)).toBe(false);
    await bystander.$transaction((tx) => tx.stock.count());
    expect(await operator.forceRelease(key, await operator.inspect(key))).toBe(true);
    await expect(bystander.$transaction(() => {})).rejects.toMatchObject({ code: 'STALE_TOKEN' });
  });

  test('of the holder that was seen does not end the transaction of one that follows it meanwhile', async () => {
    const { key } = await shop.product(10);
    const seen = await prisma.$lock(key, { leaseTime: LEASE });
    const url = inject('postgres').app;
    const rescue = await proxyTo(url);
    shop.closeLater(() => rescue.close());
    const { prisma: late, proxy } = await proxied(shop, url, {}, rescue.url(url));
    const asked = gate();
    const letThrough = proxy.onData('toServer', (data) => {
      if (!data.includes('fenced_lock.admit')) return 'forward';
      asked.open();
      return 'hold';
    });
    const forced = late.$locks.forceRelease(key, await operator.inspect(key));
    // It has compared the holder, and raises the token next.
    await asked.opened;
    await seen.release();
    const { held: bystander, goOn } = await atWork(shop.client().prisma, key, (tx) => tx.$queryRaw`SELECT 1 AS works`);
    // Longer than a later transaction may last without `seen`.
    await sleep(1_100);
    const answered = gate();
    rescue.onData('toClient', (data) => {
      // A column of the statement that ends blocking transactions.
      if (data.includes('ended')) answered.open();
      return 'forward';
    });
    letThrough();
    proxy.resume();
    await answered.opened;
    goOn();
    expect(await bystander).toEqual([{ works: 1 }]);
    expect(await forced).toBe(false);
  });
});

describeWithShop('$locks.history', () => {
  const shop = new Shop();
  const turn = (prisma: ShopClient, key: string) => prisma.$withLock(key, (_, lock) => lock.token);

  test('with a recorder has the turns of this process with token, process, duration and outcome', async () => {
    const { key } = await shop.product(1);
    const process = 'sales 1';
    const { prisma } = shop.client({ name: process });
    const before = await turn(prisma, key);
    const stop = recordLockHistory();
    onTestFinished(stop);
    const first = await turn(prisma, key);
    const failing = prisma.$withLock(key, () => {
      throw new RangeError('of the caller');
    });
    await expect(failing).rejects.toThrow(RangeError);
    const last = await turn(prisma, key);
    const history = await prisma.$locks.history(key);
    expect(history).toMatchObject({ key, turns: 3n, recorded: true });
    const own = { process, operation: '$withLock', duration: expect.any(Number), admittedAt: expect.any(Date) };
    expect(history.last).toMatchObject([
      { ...own, turn: 3n, token: last, outcome: 'committed', inPostgres: true },
      { ...own, outcome: 'rolled-back', inPostgres: false, error: 'RangeError' },
      { ...own, turn: 2n, token: first, outcome: 'committed', inPostgres: true },
      { turn: 1n, token: undefined, process: undefined, outcome: 'committed', inPostgres: true },
    ]);
    expect(history.last[1]?.token).toBeGreaterThan(before);
    stop();
    expect((await prisma.$locks.history(key)).last).toHaveLength(3);
  });

  test('says why a turn was rolled back, and has the turns of a handle and of several keys', async () => {
    const { key } = await shop.product(1);
    const [prisma, operator] = [shop.client().prisma, shop.client().prisma];
    onTestFinished(recordLockHistory());
    const { held: working } = await atWork(prisma, key);
    const lost = expect(working).rejects.toThrow(TransactionAbortedError);
    await prisma.$locks.forceRelease(key);
    await lost;
    const handle = await operator.$lock([key, `${key}:b`]);
    await handle.$transaction(() => {});
    await handle.release();
    for (const each of [key, `${key}:b`]) {
      const { last } = await operator.$locks.history(each);
      expect(last.slice(0, 2)).toMatchObject([
        { operation: 'handle.$transaction', inPostgres: true, token: expect.any(BigInt) },
        { operation: '$lock', inPostgres: true },
      ]);
    }
    const { last } = await operator.$locks.history(key);
    expect(last.find(({ outcome }) => outcome === 'rolled-back')).toMatchObject({ error: 'TRANSACTION_ABORTED' });
  });
});

describeWithShop('a key in whose place in Redis somebody else has written', () => {
  const shop = new Shop();

  /** What stands in the way, by the name that it has. */
  const ALIENS: Record<string, (redis: Redis, names: { lease: string; queue: string }) => Promise<unknown>> = {
    'a list in the place of the lease': (redis, { lease }) => redis.rpush(lease, 'not ours'),
    'a megabyte in the place of the lease': (redis, { lease }) => redis.set(lease, 'a '.repeat(1 << 19)),
    'a string in the place of the queue': (redis, { queue }) => redis.set(queue, 'not ours'),
    'both, each of another type': (redis, { lease, queue }) =>
      Promise.all([redis.hset(lease, 'not', 'ours'), redis.zadd(queue, 1, 'not ours')]),
  };

  async function taken(put: (typeof ALIENS)[string]) {
    const keyPrefix = `${randomUUID()}:`;
    const { prisma } = shop.client({ keyPrefix });
    const { id, key } = await shop.product(10);
    await put(shop.redis(), { lease: `${keyPrefix}{${key}}:lease`, queue: `${keyPrefix}{${key}}:queue` });
    return { prisma, keyPrefix, id, key };
  }

  test.each(Object.entries(ALIENS))(
    '%s: is refused and listed, each with what is wrong, and is free again after forceRelease',
    async (_, put) => {
      const { prisma, keyPrefix, id, key } = await taken(put);
      // Who is alone in the line asks for the queue only when it waits.
      const lock = await prisma.$lock(key, { waitTime: 300 }).catch((error: unknown) => error);
      const call = prisma.$withLock(key, () => {}, { waitTime: 300 });
      const error = lock instanceof Error ? lock : await call.catch((error: unknown) => error);
      expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', key, message: expect.stringContaining('forceRelease') });
      await call.catch(() => {});
      const problem = expect.stringContaining('has a value that this package did not write');
      expect(await prisma.$locks.list()).toMatchObject([{ key, problem }]);
      expect(await prisma.$locks.inspect(key)).toMatchObject({ key, problem });
      expect(await prisma.$locks.forceRelease(key)).toBe(true);
      expect(await shop.redis().keys(`${keyPrefix}*`)).toEqual([]);
      const sold = await prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
      expect(sold.quantity).toBe(9);
    },
  );

  test('a holder that is there all the same keeps its lease when the queue is cleared by another name', async () => {
    const { prisma, keyPrefix, key } = await taken(async () => {});
    const lock = await prisma.$lock(key);
    await shop.redis().set(`${keyPrefix}{${key}}:queue`, 'not ours');
    const [holder] = lock.toJSON().holders;
    expect(await prisma.$locks.inspect(key)).toMatchObject({ holder, problem: expect.any(String) });
    expect(await prisma.$locks.forceRelease(key)).toBe(true);
    expect(await shop.redis().keys(`${keyPrefix}*`)).toEqual([]);
    await lock.release();
  });
});
