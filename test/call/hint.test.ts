import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, expect, inject, test, vi } from 'vitest';
import { MovingAverage } from '../../src/base/moving-average.js';
import { fencedLock } from '../../src/index.js';
import { namesOf } from '../../src/redis/names.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { aroundScripts } from '../support/around-scripts.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';
import { slowCommit } from './slow-commit.js';
import { lookedForBlockers } from './waits-in-postgres.js';

type OnRun = (run: number, tx: Pick<ShopClient, '$executeRawUnsafe'>) => unknown;

/** A turn shorter than this tells nobody of its COMMIT if nobody is known to want the key; milliseconds. */
const SHORT_TURN = 50;

describeWithShop('a process that is next, while the COMMIT before it is under way', () => {
  const shop = new Shop();
  afterEach(() => void vi.restoreAllMocks());

  /** A contender in another process, and what its sessions do. @param options settings of its sessions. */
  function contending(isolationLevel?: 'RepeatableRead', options = '') {
    const application_name = `next ${randomUUID()}`;
    const { prisma } = shop.client({ pool: { application_name, options } });
    const doing = async () => {
      const { rows } = await shop.admin.query<{ state: string; waits: boolean }>(
        `SELECT state, wait_event_type IS NOT DISTINCT FROM 'Lock' AS waits FROM pg_stat_activity
         WHERE application_name = $1 AND state <> 'idle'`,
        [application_name],
      );
      return rows[0];
    };
    /** Resolves to the time at which its transaction began. */
    const enter = async (key: string) => {
      const held = prisma.$withLock(
        key,
        async (tx) => (await tx.$queryRaw<[{ began: Date }]>`SELECT transaction_timestamp() AS began`)[0].began,
        isolationLevel ? { isolationLevel } : {},
      );
      await eventually('it waits', async () => (await prisma.$locks.inspect(key)).waiting === 1);
      return { held };
    };
    /** Asks without a pause for half a second: it waits for a tenth of a second at most. */
    const isSeenWaiting = async () => {
      const until = performance.now() + 500;
      while (performance.now() < until) if ((await doing())?.waits) return true;
      return false;
    };
    return { prisma, doing, enter, isSeenWaiting };
  }

  /** Counts what a client of Redis sends. */
  function observed() {
    const redis = shop.redis();
    const sent: unknown[] = [];
    aroundScripts(redis, ({ name, send }) => {
      sent.push(name);
      return send();
    });
    return { redis, sent };
  }

  /**
   * A holder whose COMMIT lasts until it is told to go on. Its turn is long enough for a hint to whoever it may be.
   *
   * @param refused whether its COMMIT is refused; `once`: its work then runs again.
   * @param onRun what the work does at its end, with the number of its run.
   */
  async function committing(prisma: ShopClient, key: string, refused: boolean | 'once' = false, onRun?: OnRun) {
    const slow = await slowCommit(shop, refused === 'once' ? '40001' : undefined);
    const [begun, ends] = [gate(), gate()];
    let runs = 0;
    const work = async (tx: Pick<ShopClient, '$executeRawUnsafe'>) => {
      runs++;
      begun.open();
      await Promise.all([ends.opened, sleep(SHORT_TURN)]);
      await tx.$executeRawUnsafe(slow.insert(refused === 'once' ? runs === 1 : refused));
      await onRun?.(runs, tx);
    };
    // So long that nobody gets the key because a lease has ended.
    const held = prisma.$withLock(key, work, { leaseTime: 60_000, retries: refused === 'once' ? 1 : 0 });
    await begun.opened;
    const end = async () => {
      ends.open();
      await shop.blocked('COMMIT');
    };
    return { held, end, goOn: slow.goOn };
  }

  /**
   * A holder of this client whose COMMIT lasts, and a contender that waits for its row. On a busy machine, the contender's
   * transaction may be rolled back before anybody has seen it wait: then with another key.
   */
  async function hinted(
    client = () => shop.client().prisma,
    goesOn = () => {},
    refused: boolean | 'once' = false,
    onRun?: OnRun,
  ) {
    for (let tries = 0; tries < 20; tries++) {
      const { key } = await shop.product(10);
      const prisma = client();
      const holder = await committing(prisma, key, refused, onRun);
      const contender = contending();
      const { held } = await contender.enter(key);
      await holder.end();
      if (await contender.isSeenWaiting()) return { key, prisma, holder, contender, held };
      await holder.goOn();
      goesOn();
      await Promise.allSettled([holder.held, held]);
    }
    throw new Error('no contender was seen to wait for the row');
  }

  const clock = async () =>
    (await shop.admin.query<{ at: Date }>('SELECT clock_timestamp() AS at')).rows[0]?.at as Date;

  /** On a busy machine, the contender's transaction may be rolled back before the COMMIT is done. Then once more. */
  async function inOneOf(tries: number, run: () => Promise<boolean>) {
    for (let left = tries; left > 0; left--) if (await run()) return;
    throw new Error(`in none of ${tries} tries`);
  }

  test('has its admission asked for, and works in that transaction', async () => {
    await inOneOf(10, async () => {
      const { holder, held } = await hinted();
      const before = await clock();
      await holder.goOn();
      await holder.held;
      return (await held).getTime() <= before.getTime();
    });
  });

  test('gives its connection back where that lasts, and has its turn all the same', async () => {
    const { holder, contender, held } = await hinted();
    // Before the holder's lease would end, and a look with it.
    await eventually('it is rolled back', async () => (await contender.doing()) === undefined, { within: 3_000 });
    const after = await clock();
    await holder.goOn();
    expect((await held).getTime()).toBeGreaterThan(after.getTime());
    await holder.held;
  });

  /** A client whose releases wait until they may go. */
  function releasingLate() {
    const [redis, mayGo] = [shop.redis(), gate()];
    aroundScripts(redis, async ({ name, send }) => {
      if (name === 'release') await mayGo.opened;
      return await send();
    });
    return { prisma: shop.client({ redis }).prisma, release: mayGo.open };
  }

  test('begins its work when that COMMIT is done, before the holder has released the key, which then is its own', async () => {
    let late = releasingLate();
    const client = () => {
      late = releasingLate();
      return late.prisma;
    };
    await inOneOf(10, async () => {
      const { key, prisma, holder, contender, held } = await hinted(client, () => late.release());
      const before = (await prisma.$locks.inspect(key)).holder;
      await holder.goOn();
      const rolledBack = eventually('it is over', async () => (await contender.doing()) === undefined);
      const isAhead = await Promise.race([held.then(() => true), rolledBack.then(() => false)]);
      late.release();
      await Promise.all([holder.held, held]);
      // What it had is released by itself: nobody waits for the end of a lease.
      await eventually('the key is free', async () => (await prisma.$locks.inspect(key)).holder === undefined);
      expect(before).toBeDefined();
      await rolledBack;
      return isAhead;
    });
  });

  test('does not begin its work where that COMMIT is refused, until it has the lease', async () => {
    let late = releasingLate();
    const client = () => {
      late = releasingLate();
      return late.prisma;
    };
    const { holder, contender, held } = await hinted(client, () => late.release(), true);
    let worked = false;
    const working = held.then(() => {
      worked = true;
    });
    const refused = expect(holder.held).rejects.toMatchObject({ cause: { message: 'refused' } });
    await holder.goOn();
    await refused;
    // Its transaction was admitted, and ends without the lease.
    await eventually('it is rolled back', async () => (await contender.doing()) === undefined);
    expect(worked).toBe(false);
    late.release();
    await working;
  });

  test('begins its work behind none of the attempts of a holder whose COMMIT is refused, but the last', async () => {
    const order: string[] = [];
    const onRun = (run: number) => void order.push(`run ${run}`);
    const { holder, held } = await hinted(undefined, undefined, 'once', onRun);
    const working = held.then(() => order.push('contender'));
    await holder.goOn();
    await Promise.all([holder.held, working]);
    // Before them are those of the holders behind which no contender was seen to wait.
    expect(order.slice(-3)).toEqual(['run 1', 'run 2', 'contender']);
  });

  test('cannot have the lease of a holder whose COMMIT is refused, which is told if its next attempt is ended', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    const again = gate();
    const holder = await committing(prisma, key, 'once', async (run, tx) => {
      if (run === 1) return;
      again.open();
      await tx.$executeRawUnsafe('SELECT pg_sleep(60)');
    });
    const { held } = await contending().enter(key);
    await holder.end();
    const ended = expect(holder.held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection' });
    await holder.goOn();
    await again.opened;
    await shop.client().prisma.$locks.forceRelease(key);
    await ended;
    await held;
  });

  test.each<[string, (before: string) => string]>([
    ['comes late', (before) => before],
    ['is of a transaction in another database', () => randomUUID()],
  ])('does not begin its work by a hint that %s, while a handle has the key', async (_, attemptOf) => {
    const { key, id } = await shop.product(10);
    const { prisma } = shop.client();
    await prisma.$withLock(key, () => {});
    const { rows } = await shop.admin.query('SELECT attempts[1] AS last FROM fenced_lock.admission WHERE key = $1', [
      key,
    ]);
    const handle = await prisma.$lock(key);
    const contender = contending();
    const { held } = await contender.enter(key);
    let worked = false;
    const working = held.then(() => {
      worked = true;
    });
    const { queue, wake } = namesOf('fenced-lock:', key);
    const redis = shop.redis();
    const [place = ''] = await redis.lrange(queue, 0, 0);
    await redis.publish(wake, `next ${place.split(' ')[0]} ${randomUUID()} ${attemptOf(rows[0].last)}`);
    await eventually('its transaction has begun', async () => (await contender.doing()) !== undefined);
    await eventually('it is rolled back', async () => (await contender.doing()) === undefined);
    expect(worked).toBe(false);
    await handle.$transaction((tx) => tx.stock.update({ where: { id }, data: { quantity: 8 } }));
    await handle.release();
    await working;
  });

  test('does not begin its work by the hint of one of its keys, while a handle has another', async () => {
    const { key } = await shop.product(10);
    const other = `${key}:other`;
    const handle = await shop.client().prisma.$lock(other);
    const holder = await committing(shop.client().prisma, key);
    const { prisma } = shop.client();
    let worked = false;
    const held = prisma.$withLock([key, other], () => {
      worked = true;
    });
    await eventually('it waits', async () => (await prisma.$locks.inspect(key)).waiting === 1);
    await holder.end();
    await holder.goOn();
    await holder.held;
    await eventually('it waits for the other key', async () => (await prisma.$locks.inspect(other)).waiting === 1);
    expect(worked).toBe(false);
    await handle.release();
    await held;
  });

  test('is told nothing by a process whose COMMITs are short', async () => {
    vi.spyOn(MovingAverage.prototype, 'isBelow').mockReturnValue(true);
    const { key } = await shop.product(10);
    const { redis, sent } = observed();
    const holder = await committing(shop.client({ redis }).prisma, key);
    const { held } = await contending().enter(key);
    await holder.end();
    await holder.goOn();
    await Promise.all([holder.held, held]);
    expect(sent).toContain('release');
    expect(sent).not.toContain('hint');
  });

  test('is told nothing by a short turn that had the key at once', async () => {
    vi.spyOn(MovingAverage.prototype, 'isBelow').mockReturnValue(false);
    const { redis, sent } = observed();
    const { prisma } = shop.client({ redis });
    // A turn may be long on a busy machine.
    for (let tries = 0; ; tries++) {
      const { id, key } = await shop.product(10);
      sent.length = 0;
      const began = performance.now();
      await prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
      if (performance.now() - began < SHORT_TURN) break;
      expect(tries).toBeLessThan(50);
    }
    await eventually('it is released', async () => sent.includes('release'));
    expect(sent).not.toContain('hint');
  });

  test('is told before COMMIT is sent: its transaction takes longer to open than the COMMIT takes to get there', async () => {
    vi.spyOn(MovingAverage.prototype, 'isBelow').mockReturnValue(false);
    const { redis, sent } = observed();
    const { prisma } = shop.client({ redis });
    const { key } = await shop.product(10);
    const wasTold: boolean[] = [];
    const { query } = pg.Client.prototype;
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...given: unknown[]) {
      if ((given[0] as { text?: string }).text === 'COMMIT') wasTold.push(sent.includes('hint'));
      return Reflect.apply(query, this, given) as unknown;
    });
    await prisma.$withLock(key, () => sleep(SHORT_TURN));
    expect(wasTold).toEqual([true]);
  });

  test('is told by a short turn of a process that has waited for the key itself', async () => {
    vi.spyOn(MovingAverage.prototype, 'isBelow').mockReturnValue(false);
    const { redis, sent } = observed();
    const { prisma } = shop.client({ redis });
    for (let tries = 0; ; tries++) {
      const { id, key } = await shop.product(10);
      const held = await shop.client().prisma.$lock(key);
      let began = 0;
      const contender = prisma.$withLock(key, (tx) => {
        began = performance.now();
        return tx.stock.update({ where: { id }, data: { quantity: 9 } });
      });
      await eventually('it waits', async () => (await prisma.$locks.inspect(key)).waiting === 1);
      await held.release();
      await contender;
      if (performance.now() - began < SHORT_TURN) break;
      expect(tries).toBeLessThan(50);
    }
    expect(sent).toContain('hint');
  });

  test('gets the key before a caller of the holder that has come since', async () => {
    const { redis, sent } = observed();
    const { key, prisma, holder, held } = await hinted(() => shop.client({ redis }).prisma);
    const order: string[] = [];
    const first = held.then(() => order.push('contender'));
    const second = prisma.$withLock(key, () => order.push('caller of the holder'), { leaseTime: 60_000 });
    sent.length = 0;
    await holder.goOn();
    await Promise.all([first, second, holder.held]);
    expect(order).toEqual(['contender', 'caller of the holder']);
    // Not under the lease that the contender takes over.
    expect(sent).toContain('acquire');
  });

  test('begins nothing where its snapshot would be from before that COMMIT', async () => {
    const { key } = await shop.product(10);
    const holder = await committing(shop.client().prisma, key);
    const contender = contending('RepeatableRead');
    const { held } = await contender.enter(key);
    await holder.end();
    for (let looks = 0; looks < 20; looks++) expect(await contender.doing()).toBeUndefined();
    await holder.goOn();
    await held;
    await holder.held;
  });

  test('begins nothing any more where its role’s isolation level has made such a transaction fail once', async () => {
    const contender = contending(undefined, '-c default_transaction_isolation=serializable');
    // On a busy machine, its transaction may be rolled back before that COMMIT is done, and fails by nothing then.
    await inOneOf(10, async () => {
      const { key } = await shop.product(10);
      const holder = await committing(shop.client().prisma, key);
      const { held } = await contender.enter(key);
      await holder.end();
      const hasBegun = await contender.isSeenWaiting();
      await holder.goOn();
      await Promise.all([holder.held, held]);
      return !hasBegun;
    });
  });

  test('begins nothing where others wait for a connection of its pool', async () => {
    const { key } = await shop.product(10);
    const holder = await committing(shop.client().prisma, key);
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString, max: 1 });
    shop.closeLater(() => pool.end());
    const contender = new PrismaClient({ adapter: new PrismaPg(pool) }).$extends(
      fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString }) }),
    );
    await contender.$queryRaw`SELECT 1`;
    const held = contender.$withLock(key, () => 'in');
    await eventually('it waits', async () => (await contender.$locks.inspect(key)).waiting === 1);
    const taken = await pool.connect();
    const bystander = pool.connect();
    expect(pool.waitingCount).toBe(1);
    await holder.end();
    const most = await watched(() => pool.waitingCount, 100);
    expect(most).toBe(1);
    taken.release();
    (await bystander).release();
    await holder.goOn();
    expect(await held).toBe('in');
    await holder.held;
  });

  /** A Redis client whose looks that tell of a takeover are answered when they may be. */
  function answeringLate() {
    const [redis, mayAnswer] = [shop.redis(), gate()];
    const state = { isHeldBack: false };
    aroundScripts(redis, async ({ name, args, send }) => {
      const answer = await send();
      // The last argument is the former holder.
      if (name === 'acquire' && args.at(-1) !== '') {
        state.isHeldBack = true;
        await mayAnswer.opened;
      }
      return answer;
    });
    return { redis, state, answer: mayAnswer.open };
  }

  test('runs its work again only when the lease is confirmed: that attempt is not right behind the COMMIT', async () => {
    // On a busy machine, the contender's transaction may be rolled back before that COMMIT is done: then with another key.
    for (let tries = 0; tries < 20; tries++) {
      const { key } = await shop.product(10);
      const holder = await committing(shop.client().prisma, key);
      const { redis, state, answer } = answeringLate();
      const { prisma } = shop.client({ redis });
      const failed = gate();
      let runs = 0;
      const held = prisma.$withLock(
        key,
        async (tx) => {
          if (++runs > 1) return runs;
          failed.open();
          await tx.$executeRawUnsafe("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$");
        },
        { retries: 1 },
      );
      await eventually('it waits', async () => (await prisma.$locks.inspect(key)).waiting === 1);
      await holder.end();
      await holder.goOn();
      await Promise.all([holder.held, failed.opened]);
      const isAhead = state.isHeldBack;
      // Far longer than the pause between two runs.
      await sleep(200);
      if (isAhead) expect(runs).toBe(1);
      answer();
      expect(await held).toBe(2);
      if (isAhead) return;
    }
    throw new Error('no contender has begun by a hint');
  });

  /**
   * A client that connected before it was extended, and shares its pool: its first transaction under a lock cannot be told
   * from one of another database, so it is given up, and the call begins again.
   */
  async function givingUpItsFirst(redis: Redis) {
    const pool = new pg.Pool({ connectionString: inject('postgres').app, max: 4 });
    const [earlier, other] = [0, 1].map(() => new PrismaClient({ adapter: new PrismaPg(pool) })) as [
      PrismaClient,
      PrismaClient,
    ];
    shop.closeLater(async () => {
      await Promise.all([earlier.$disconnect(), other.$disconnect()]);
      await pool.end();
    });
    await earlier.$queryRaw`SELECT 1`;
    await other.$extends(fencedLock({ redis: shop.redis() })).$withLock(randomUUID(), () => {});
    return earlier.$extends(fencedLock({ redis }));
  }

  test('begins again only when the lease is confirmed, where its transaction was given up before the work', async () => {
    // On a busy machine, the contender's transaction may be rolled back before that COMMIT is done: then with another key.
    for (let tries = 0; tries < 20; tries++) {
      const { key } = await shop.product(10);
      const holder = await committing(shop.client().prisma, key);
      const { redis, state, answer } = answeringLate();
      const prisma = await givingUpItsFirst(redis);
      const begun = vi.fn(() => 'in');
      const held = prisma.$withLock(key, begun);
      await eventually('it waits', async () => (await prisma.$locks.inspect(key)).waiting === 1);
      await holder.end();
      await holder.goOn();
      await holder.held;
      await eventually('it has looked or begun', async () => state.isHeldBack || begun.mock.calls.length > 0);
      const isAhead = state.isHeldBack;
      // Far longer than another transaction takes to begin.
      await sleep(200);
      if (isAhead) expect(begun).not.toHaveBeenCalled();
      answer();
      expect(await held).toBe('in');
      if (isAhead) return;
    }
    throw new Error('no contender has begun by a hint');
  });

  /** A client that goes on without Redis, which answers no more from the look on that tells it of the takeover. */
  function withoutAnswer() {
    const redis = shop.redis();
    const state = { fails: false };
    aroundScripts(redis, async ({ name, args, send }) => {
      // The last argument is the former holder.
      state.fails ||= name === 'acquire' && args.at(-1) !== '';
      if (state.fails) throw new Error('no answer');
      return await send();
    });
    return { ...shop.client({ redis, onRedisUnavailable: 'postgres' }), state };
  }

  test('is not ended by the next holder of the lease where it then goes on without Redis', async () => {
    // On a busy machine, the contender's transaction may be rolled back before that COMMIT is done: then with another key.
    for (let tries = 0; tries < 20; tries++) {
      const { key } = await shop.product(10);
      const holder = await committing(shop.client().prisma, key);
      const { prisma, state } = withoutAnswer();
      const [begun, ends] = [gate(), gate()];
      const held = prisma.$withLock(key, async () => {
        begun.open();
        await ends.opened;
        return 'done';
      });
      held.catch(() => {});
      await eventually('it waits', async () => (await prisma.$locks.inspect(key)).waiting === 1);
      await holder.end();
      await holder.goOn();
      await Promise.all([holder.held, begun.opened]);
      const next = state.fails && shop.client().prisma.$withLock(key, () => 'next');
      if (next) await lookedForBlockers(shop);
      ends.open();
      expect(await held).toBe('done');
      if (!next) continue;
      expect(await next).toBe('next');
      return;
    }
    throw new Error('no contender has begun by a hint');
  });
});

/** The largest value within `ms`. */
async function watched(value: () => number, ms: number): Promise<number> {
  let most = value();
  const until = performance.now() + ms;
  while (performance.now() < until) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, value());
  }
  return most;
}
