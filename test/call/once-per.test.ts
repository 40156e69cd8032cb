import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import {
  InvalidOptionError,
  type Lock,
  type LockTx,
  NestedError,
  type OnceOptions,
  type OnceResult,
  ReentryError,
} from '../../src/index.js';
import { busy } from '../support/busy.js';
import { eventually } from '../support/eventually.js';
import { listen } from '../support/heard.js';
import { proxied } from '../support/proxied.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

const HOUR = 3_600_000;
/** An interval of an hour that has just begun, so that none ends during a test. */
const fresh = () => ({ offset: (Date.now() - 60_000) % HOUR });
/** An interval that ends so many milliseconds from now. */
const ending = (ms: number) => ({ offset: (Date.now() + ms) % HOUR });

/** Like every try of a lock, one gives Redis a moment to answer; this machine may be busier than that. */
async function once<R>(
  client: ShopClient,
  key: string,
  fn: (tx: LockTx<ShopClient>, lock: Lock) => R | Promise<R>,
  { interval = HOUR, ...options }: OnceOptions & { readonly interval?: number } = {},
): Promise<OnceResult<R>> {
  for (;;) {
    try {
      return await client.$oncePer(key, interval, fn, options);
    } catch (error) {
      if ((error as { code?: string }).code !== 'LOCK_UNAVAILABLE') throw error;
    }
  }
}

describeWithShop('$oncePer', () => {
  const shop = new Shop();
  const heard = listen();

  const LEVELS = [undefined, 'RepeatableRead', 'Serializable'] as const;

  test.each(LEVELS)('of many that come at once one runs; later ones learn when the next is due (%s)', async (level) => {
    const { id, key } = await shop.product(10);
    const options = { ...fresh(), ...(level && { isolationLevel: level }) };
    const clients = Array.from({ length: 5 }, () => shop.client().prisma);
    const run = (client: (typeof clients)[number]) =>
      once(
        client,
        key,
        async (tx, lock) => {
          await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
          return lock.token;
        },
        options,
      );
    const results = await Promise.all([...clients, ...clients].map(run));
    const [ran, ...others] = results.filter((result) => result.ran);
    expect(others).toEqual([]);
    expect(await shop.row(id)).toEqual({ quantity: 9, fence: ran?.value });
    const before = Date.now();
    const later = await run(shop.client().prisma);
    if (later.ran) throw new Error('it ran again');
    expect(later).toMatchObject({ ran: false, busy: false });
    expect((later.next.getTime() - options.offset) % HOUR).toBe(0);
    expect(later.next.getTime() - before).toBeGreaterThan(HOUR - 120_000);
    expect(later.next.getTime() - before).toBeLessThan(HOUR);
    expect(Math.abs(later.next.getTime() - before - later.nextIn)).toBeLessThan(5_000);
  });

  test('a run that was rolled back does not count: another one runs in the same interval', async () => {
    const { id, key } = await shop.product(10);
    const [one, other] = [shop.client().prisma, shop.client().prisma];
    const options = fresh();
    const failed = once(
      one,
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        throw new Error('no run');
      },
      options,
    );
    await expect(failed).rejects.toThrow('no run');
    const second = await once(other, key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }), options);
    expect(second).toMatchObject({ ran: true, value: { quantity: 10 } });
  });

  test('a commit whose answer was lost counts; one that did not arrive does not', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const options = fresh();
    const run = (quantity: number) =>
      once(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity } }), options);
    void proxy.cutBeforeCommit();
    await expect(run(9)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    void proxy.cutAfterCommit();
    expect(await run(8)).toMatchObject({ ran: true, value: { quantity: 8 } });
    expect(await run(7)).toMatchObject({ ran: false, busy: false });
    expect((await shop.row(id))?.quantity).toBe(8);
  });

  test('while somebody else runs it, and behind a lock of the same key: busy, at once, to be tried again soon', async () => {
    const { key } = await shop.product(1);
    const [one, other] = [shop.client().prisma, shop.client().prisma];
    const [inside, goOn] = [gate(), gate()];
    const options = fresh();
    const running = once(
      one,
      key,
      async () => {
        inside.open();
        await goOn.opened;
      },
      options,
    );
    await inside.opened;
    const result = await once(other, key, () => 'ran', { ...options, leaseTime: 5_000 });
    expect(result).toMatchObject({ ran: false, busy: true });
    if (!result.ran) expect(result.nextIn).toBeLessThanOrEqual(5_001);
    // When the holder's lease ends counts, and not how long one of this caller would be.
    const patient = await once(other, key, () => 'ran', { ...options, leaseTime: 600_000 });
    expect(patient).toMatchObject({ ran: false, busy: true });
    if (!patient.ran) expect(patient.nextIn).toBeLessThanOrEqual(5_001);
    const short = await once(other, key, () => 'ran', { interval: 200 });
    expect(short).toMatchObject({ ran: false, busy: true });
    if (!short.ran) expect(short.nextIn).toBeLessThanOrEqual(200);
    goOn.open();
    expect(await running).toMatchObject({ ran: true });
    expect(await once(other, key, () => 'ran', options)).toMatchObject({ ran: false, busy: false });
  });

  test('a run that was committed while this caller was on its way to its transaction counts, and is published as no error', async () => {
    const { key } = await shop.product(1);
    const { prisma: late, proxy } = await proxied(shop, inject('postgres').app);
    const options = fresh();
    const asked = gate();
    const remove = proxy.onData('toServer', (data) => {
      if (!data.includes('fenced_lock.admit')) return 'forward';
      asked.open();
      return 'hold';
    });
    let ran = false;
    const second = late.$oncePer(
      key,
      HOUR,
      () => {
        ran = true;
      },
      options,
    );
    second.catch(() => {});
    // It has seen that the run is due, has the lock, and loses it without a word.
    await asked.opened;
    const redis = shop.redis();
    await eventually('the late one has the lock', () => redis.del(`fenced-lock:{${key}}:lease`));
    expect(await once(shop.client().prisma, key, () => 'first', options)).toMatchObject({ ran: true });
    remove();
    proxy.resume();
    expect(await second).toMatchObject({ ran: false, busy: false });
    expect(ran).toBe(false);
    for (const part of ['lock', 'transaction', 'work'] as const) {
      expect(heard.messages(key, `fenced-lock:${part}`).map(({ error }) => error)).toEqual([undefined, undefined]);
    }
  });

  test('who finds it done needs neither Redis nor a connection of the pool', async () => {
    const { key } = await shop.product(1);
    const options = fresh();
    await once(shop.client().prisma, key, () => {}, options);
    const redis = new Redis('redis://127.0.0.1:1', { lazyConnect: true, retryStrategy: () => null });
    redis.on('error', () => {});
    const { prisma, plain } = shop.client({ redis, pool: { max: 1 } });
    const { letGo } = await busy(plain);
    expect(await once(prisma, key, () => 'ran', options)).toMatchObject({ ran: false, busy: false });
    await letGo();
  });

  test('a clock of Postgres that was set back does not repeat an interval', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const options = fresh();
    await once(prisma, key, () => {}, options);
    // As if it had run when the clock was nearly an hour ahead.
    const { rows } = await shop.admin.query(
      `UPDATE fenced_lock.last_run SET ran_at = ran_at + interval '50 minutes'
       WHERE key = $1 RETURNING extract(epoch FROM ran_at)::float8 * 1000 AS ran_at`,
      [key],
    );
    const ranAt = (rows[0] as { ran_at: number }).ran_at;
    const result = await once(prisma, key, () => 'ran', options);
    if (result.ran) throw new Error('it ran again');
    expect(result.next.getTime()).toBeGreaterThan(ranAt);
    expect(result.next.getTime()).toBeLessThanOrEqual(ranAt + HOUR);
    expect((result.next.getTime() - options.offset) % HOUR).toBe(0);
  });

  test('`atLeast` keeps the next run away although the next interval has begun; without it, that one runs', async () => {
    const { prisma } = shop.client();
    const [kept, free] = [(await shop.product(1)).key, (await shop.product(1)).key];
    await prisma.$withLock(`${kept} before`, () => {});
    const options = ending(3_000);
    const ran = await once(prisma, kept, () => 'ran', { ...options, atLeast: 60_000 });
    const other = await once(prisma, free, () => 'ran', options);
    expect([ran.ran, other.ran]).toEqual([true, true]);
    const again = await eventually('the next interval has begun', async () => {
      const result = await once(prisma, free, () => 'again', options);
      return result.ran && result;
    });
    expect(again).toMatchObject({ value: 'again' });
    const result = await once(prisma, kept, () => 'again', { ...options, atLeast: 60_000 });
    if (result.ran) throw new Error('it ran again');
    expect(result.nextIn).toBeGreaterThan(30_000);
    expect(result.nextIn).toBeLessThanOrEqual(60_000);
  });

  test('is refused inside a lock, whatever its key, inside a transaction, and on their clients', async () => {
    const [{ key }, other] = [await shop.product(1), await shop.product(1)];
    const { prisma } = shop.client();
    const run = () => once(prisma, key, () => 'ran');
    await expect(prisma.$withLock(key, run)).rejects.toBeInstanceOf(ReentryError);
    await expect(prisma.$withLock(other.key, run)).rejects.toBeInstanceOf(NestedError);
    await expect(prisma.$transaction(async () => await run())).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    const onTx = prisma.$withLock(key, (tx) => (tx as unknown as typeof prisma).$oncePer(key, HOUR, () => 'ran'));
    await expect(onTx).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
    expect(await run()).toMatchObject({ ran: true });
  });

  test.each([
    ['interval', 99, {}],
    ['interval', '1h', {}],
    ['atLeast', 1_000, { atLeast: 1_001 }],
    ['offset', 1_000, { offset: 1_000 }],
    ['waitTime', 1_000, { waitTime: 1 }],
    ['leaseTime', 1_000, { leaseTime: 1 }],
  ])('refuses %s (%s, %o)', async (option, interval, options) => {
    const { prisma } = shop.client();
    const refused = prisma.$oncePer('job', interval as number, () => 'ran', options as never);
    await expect(refused).rejects.toMatchObject({ constructor: InvalidOptionError, option });
  });
});
