import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { LockTimeoutError } from '../../src/index.js';
import { describeWithShop, gate, Shop, type ShopOptions } from '../support/shop.js';

const OWN_NAME = `${hostname()}:${process.pid}`;

describeWithShop('who waited in vain is told who has the key', () => {
  const shop = new Shop();
  const redis = shop.redis();
  const leaseOf = (key: string) => `fenced-lock:{${key}}:lease`;

  /** Somebody holds the key until `free`. */
  async function held(options: ShopOptions = {}) {
    const { key } = await shop.product(10);
    const { prisma, events } = shop.client(options);
    const [inside, goOn] = [gate(), gate()];
    const working = prisma.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const free = async () => {
      goOn.open();
      await working;
    };
    return { key, prisma, events, free };
  }

  async function timedOut(prisma: ReturnType<Shop['client']>['prisma'], key: string): Promise<LockTimeoutError> {
    const error: unknown = await prisma.$withLock(key, () => {}, { waitTime: 1_500 }).catch((failure) => failure);
    expect(error).toBeInstanceOf(LockTimeoutError);
    return error as LockTimeoutError;
  }

  test('another process: its name, since when it was seen, and when its lease ends', async () => {
    const { key, free } = await held({ name: 'web-1:4711' });
    const began = Date.now();
    const error = await timedOut(shop.client({ name: 'web-2:9' }).prisma, key);
    await free();
    expect(error.holder).toBe('web-1:4711');
    expect(error.since?.getTime()).toBeGreaterThan(began - 2);
    expect(error.since?.getTime()).toBeLessThanOrEqual(Date.now());
    expect(error.expiresIn).toBeGreaterThan(0);
    expect(error.expiresIn).toBeLessThanOrEqual(5_000);
    expect(error.message).toMatch(
      /was not free within 1500 ms\. It has been held by web-1:4711 for at least \d+ ms; its lease ends in \d+ ms unless it is renewed\. .*raise `waitTime`/,
    );
  });

  test('another caller of the same process is said to be that', async () => {
    const { key, prisma, free } = await held({ name: 'web-1:4711' });
    const error = await timedOut(prisma, key);
    await free();
    expect(error).toMatchObject({ holder: 'web-1:4711', since: expect.any(Date), expiresIn: expect.any(Number) });
    expect(error.message).toMatch(/Another caller of this process \(web-1:4711\) has had it for \d+ ms\./);
  });

  test('a handle of the same process is said to be one, and what to call on it', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client({ name: 'web-1:4711' });
    const handle = await prisma.$lock(key);
    const error = await timedOut(prisma, key);
    expect(error).toMatchObject({ holder: 'web-1:4711', key });
    expect(error.message).toMatch(
      / A handle of this process \(web-1:4711\) has had it for \d+ ms\. .*its `\$transaction`\./,
    );
    // And no longer when the handle has ended.
    await handle.release();
    const [inside, goOn] = [gate(), gate()];
    const working = prisma.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    expect((await timedOut(prisma, key)).message).toContain('Another caller of this process');
    goOn.open();
    await working;
  });

  test('a process that was given no name is told by its host and its id', async () => {
    const { key, free } = await held();
    const operator = shop.client({ name: 'operator' }).prisma;
    expect(await operator.$locks.inspect(key)).toMatchObject({ process: OWN_NAME });
    expect((await timedOut(operator, key)).holder).toBe(OWN_NAME);
    await free();
  });

  test.each([
    ['spaces and digits', 'worker 7 of 12'],
    ['what a script or a pattern would mean something by', `'" .. KEYS[1] %s .- $ {} \\ ]]`],
    ['other letters', 'büro-東京-🔒'],
    ['nothing but digits', '4711'],
  ])('a name of %s arrives as it is, through takings and renewals', async (_, name) => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client({ name });
    const lock = await prisma.$lock(key, { leaseTime: 1_800 });
    const { prisma: operator } = shop.client({ name: 'operator' });
    const before = await operator.$locks.inspect(key);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const after = await operator.$locks.inspect(key);
    expect([before.process, after.process]).toEqual([name, name]);
    expect(after.holder).toBe(before.holder);
    expect(lock.signal.aborted).toBe(false);
    await lock.release();
    expect((await operator.$locks.inspect(key)).process).toBeUndefined();
  });

  test('whoever took up an offer has its name there, also if its lease is as long as the offer was', async () => {
    const { key, free } = await held();
    const { prisma } = shop.client({ name: 'next' });
    const inside = gate();
    const goOn = gate();
    const next = prisma.$withLock(
      key,
      async () => {
        inside.open();
        await goOn.opened;
      },
      { leaseTime: 1_000 },
    );
    await expect.poll(async () => (await prisma.$locks.inspect(key)).waiting).toBe(1);
    await free();
    await inside.opened;
    await expect.poll(async () => (await prisma.$locks.inspect(key)).process).toBe('next');
    goOn.open();
    await next;
  });

  test('work that overruns its timeout is told which option to raise', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    const late = prisma.$withLock(key, () => new Promise((resolve) => setTimeout(resolve, 300)), { timeout: 50 });
    await expect(late).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      reason: 'timeout',
      message: expect.stringContaining(
        'it had not ended within its timeout of 50 ms. Make the work shorter, or raise `timeout`.',
      ),
    });
  });

  test('work that waits for a second connection of a full pool is told that it does', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client({ pool: { max: 1 } });
    const late = prisma.$withLock(key, () => prisma.stock.count(), { timeout: 300 });
    const message = expect.stringMatching(
      /timeout of 300 ms\. Somebody waits for a connection.*in place of `tx`: use `tx`/,
    );
    await expect(late).rejects.toMatchObject({ reason: 'timeout', message });
  });

  test('a handle that is resumed elsewhere has the name of that process', async () => {
    const { key } = await shop.product(10);
    const lock = await shop.client({ name: 'first' }).prisma.$lock(key);
    const { prisma } = shop.client({ name: 'second' });
    const resumed = await prisma.$resumeLock(JSON.parse(JSON.stringify(lock)));
    expect((await prisma.$locks.inspect(key)).process).toBe('second');
    await resumed.release();
    await lock.release();
  });

  test('a lease of a version that wrote no name keeps others waiting all the same', async () => {
    const { key } = await shop.product(10);
    await redis.set(leaseOf(key), `${randomUUID()} 60000`, 'PX', 60_000);
    const error = await timedOut(shop.client().prisma, key);
    expect(error.holder).toBeUndefined();
    expect(error.message).toContain('It has been held by another process for at least');
    await redis.del(leaseOf(key));
  });

  test('such a version reads the time of a lease with a name as it is, and takes the holder for nobody it knows', async () => {
    const { key, prisma, free } = await held({ name: 'worker 7' });
    const { holder } = await prisma.$locks.inspect(key);
    const asThen = "return { string.match(redis.call('GET', KEYS[1]), '^(.*) (%d+)$') }";
    expect(await redis.eval(asThen, 1, leaseOf(key))).toEqual([`${holder} worker 7`, '5000']);
    await free();
  });

  test('a place in the queue of a version that wrote no name gets the key in its turn, and one of other software none', async () => {
    const { key } = await shop.product(10);
    const { prisma, events } = shop.client();
    // A hint would remove the places of other software before the release.
    const handle = await prisma.$lock(key);
    const { prisma: operator } = shop.client();
    const [holder, receiver, wake] = [randomUUID(), randomUUID(), `fenced-lock:{${key}}:wake`];
    // A process is there as long as it subscribes to a channel of its own.
    const subscriber = redis.duplicate();
    shop.closeLater(() => subscriber.disconnect());
    await subscriber.subscribe(`${wake}:${receiver}`);
    await redis.rpush(`fenced-lock:{${key}}:queue`, 'nonsense', `${holder} ${receiver}`);
    expect(await operator.$locks.inspect(key)).toMatchObject({ waiting: 2, waiters: [undefined, undefined] });
    await handle.release();
    await expect.poll(async () => (await operator.$locks.inspect(key)).holder).toBe(holder);
    expect(await operator.$locks.inspect(key)).toMatchObject({ waiting: 0, waiters: [] });
    // Nor does the release fail at it.
    expect(events).toEqual([]);
    await operator.$locks.forceRelease(key);
  });

  test('processes that wait are named in their order, by a client of another process', async () => {
    const { key, free } = await held({ name: 'web-1:4711' });
    const waiting = [];
    for (const name of ['web-2:9', 'worker 7']) {
      const { prisma } = shop.client({ name });
      waiting.push(prisma.$withLock(key, () => {}));
      // Two callers of one process have one place.
      waiting.push(prisma.$withLock(key, () => {}));
      await expect.poll(async () => (await prisma.$locks.inspect(key)).waiters.at(-1)).toBe(name);
    }
    const [state] = (await shop.client().prisma.$locks.list()).filter((each) => each.key === key);
    expect(state).toMatchObject({ process: 'web-1:4711', waiting: 2, waiters: ['web-2:9', 'worker 7'] });
    await free();
    await Promise.all(waiting);
  });

  test('$tryWithLock and a wait for a transaction of the same handle name nobody', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    const lock = await prisma.$lock(key);
    const goOn = gate();
    const inside = gate();
    const first = lock.$transaction(async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const second = await lock.$transaction(() => {}, { waitTime: 50 }).catch((error: unknown) => error);
    expect(second).toMatchObject({ code: 'LOCK_TIMEOUT', holder: undefined, since: undefined, expiresIn: undefined });
    expect(await shop.client().prisma.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    goOn.open();
    await first;
    await lock.release();
  });
});
