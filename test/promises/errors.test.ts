import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import type { FencedLockError, FencedLockErrorCode } from '../../src/index.js';
import * as errors from '../../src/index.js';
import { forget } from '../call/handle-work.js';
import { proxied } from '../support/proxied.js';
import { withDatabase } from '../support/servers/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';

/** Who sells under the lock `key` when the error comes. */
interface Sale {
  readonly prisma: ShopClient;
  readonly id: number;
  readonly key: string;
  /** A write that the error is about. */
  readonly sell: (tx: Pick<ShopClient, 'stock'>) => Promise<unknown>;
}

interface Case {
  readonly type: abstract new (...given: never[]) => FencedLockError;
  readonly fields?: object;
  /** What is left of 10. Default: 10, so nothing was done, or all was undone. */
  readonly left?: number;
  provoke(sale: Sale): unknown;
}

describeWithShop('each error of docs/errors.md: its class, its code, and what became of the work', () => {
  const shop = new Shop();

  /** A database of this test alone, without the objects of this package. */
  async function ownDatabase() {
    const name = `errors_${randomUUID().replaceAll('-', '')}`;
    const url = withDatabase(inject('postgres').admin, name);
    await shop.admin.query(`CREATE DATABASE ${name}`);
    shop.closeLater(async () => {
      await own.close();
      await shop.admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    });
    const own = new Shop(() => ({ postgres: url, admin: url, redis: inject('redis').url as string }));
    return { own, url };
  }

  /** As behind a crash of Postgres, since which the key has been cleared. */
  async function commitOfUnknownOutcome(): Promise<unknown> {
    const { own, url } = await ownDatabase();
    await setUpShop({ url });
    const { prisma, proxy } = await proxied(own, url);
    const { key } = await own.product(10);
    await prisma.$withLock(key, () => {});
    void proxy.cutAfterCommit();
    const heard: unknown[] = [];
    const held = prisma.$withLock(key, async (tx, lock) => {
      lock.onUnknown((error) => heard.push(error));
      await own.admin.query('UPDATE fenced_lock.epoch SET id = gen_random_uuid()');
      await tx.$executeRaw`DELETE FROM fenced_lock.admission WHERE key = ${key}`;
    });
    const error = await held.catch((error: unknown) => error);
    expect(heard).toEqual([error]);
    throw error;
  }

  // A code without its case does not compile.
  const CASES: { readonly [Code in FencedLockErrorCode]: Case } = {
    LOCK_TIMEOUT: {
      type: errors.LockTimeoutError,
      provoke: async ({ prisma, key, sell }) => {
        await using _ = await shop.client().prisma.$lock(key);
        await prisma.$withLock(key, sell, { waitTime: 50 });
      },
    },
    LOCK_UNAVAILABLE: {
      type: errors.LockUnavailableError,
      provoke: async ({ key, sell }) => {
        const redis = shop.redis();
        redis.disconnect();
        await shop.client({ redis }).prisma.$withLock(key, sell);
      },
    },
    LOCK_LOST: {
      type: errors.LockLostError,
      fields: { reason: 'gone' },
      provoke: ({ prisma, key, sell }) =>
        prisma.$withLock(
          key,
          async (tx, { signal }) => {
            await sell(tx);
            await forget(shop, key);
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
          },
          { leaseTime: 1_000 },
        ),
    },
    STALE_TOKEN: {
      type: errors.StaleTokenError,
      fields: { reason: 'other-key', model: 'Stock', fence: 9000000000000000000n },
      provoke: async ({ prisma, id, key, sell }) => {
        await shop.admin.query('UPDATE "Stock" SET fence = 9000000000000000000 WHERE id = $1', [id]);
        await prisma.$withLock(key, sell);
      },
    },
    TRANSACTION_ABORTED: {
      type: errors.TransactionAbortedError,
      fields: { reason: 'timeout' },
      provoke: ({ prisma, key, sell }) =>
        prisma.$withLock(key, (tx) => sell(tx).then(() => new Promise(() => {})), { timeout: 200 }),
    },
    COMMIT_UNKNOWN: {
      type: errors.CommitUnknownError,
      fields: { xid: expect.stringMatching(/^\d+$/), key: expect.any(String) },
      provoke: () => commitOfUnknownOutcome(),
    },
    HOOK_FAILED: {
      type: errors.HookFailedError,
      fields: { value: 'sold', errors: [new Error('no mail')], cause: new Error('no mail') },
      left: 9,
      provoke: ({ prisma, key, sell }) =>
        prisma.$withLock(
          key,
          async (tx, lock) => {
            lock.afterCommit(() => Promise.reject(new Error('no mail')));
            await sell(tx);
            return 'sold';
          },
          { hookErrors: 'throw' },
        ),
    },
    INSIDE_TRANSACTION: {
      type: errors.InsideTransactionError,
      provoke: ({ prisma, key, sell }) => prisma.$withLock(key, () => sell(prisma)),
    },
    OUTSIDE_LOCK: {
      type: errors.OutsideLockError,
      fields: { key: undefined },
      provoke: ({ prisma, sell }) => sell(errors.currentTx(prisma)),
    },
    REENTRY: {
      type: errors.ReentryError,
      provoke: ({ prisma, key, sell }) =>
        prisma.$withLock(key, () => prisma.$withLock(key, sell, { reentry: 'throw' })),
    },
    NESTED: {
      type: errors.NestedError,
      provoke: ({ prisma, key, sell }) => prisma.$withLock(`${key} outer`, () => prisma.$withLock(key, sell)),
    },
    CLOSED: {
      type: errors.ClosedError,
      provoke: async ({ prisma, key, sell }) => {
        const handle = await prisma.$lock(key);
        await handle.release();
        await handle.$transaction(sell);
      },
    },
    NOT_INSTALLED: {
      type: errors.NotInstalledError,
      fields: { key: undefined },
      provoke: async ({ key }) => (await ownDatabase()).own.client().prisma.$withLock(key, () => {}),
    },
    INVALID_OPTION: {
      type: errors.InvalidOptionError,
      fields: { key: undefined, option: 'leaseTime' },
      provoke: ({ prisma, key, sell }) => prisma.$withLock(key, sell, { leaseTime: 99 }),
    },
  };

  test.each(Object.entries(CASES))('%s', async (code, { type, fields, left = 10, provoke }) => {
    const { prisma } = shop.client();
    const { id, key } = await shop.product(10);
    const sell: Sale['sell'] = (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
    const call = Promise.resolve().then(() => provoke({ prisma, id, key, sell }));
    const error = (await call.catch((error: unknown) => error)) as FencedLockError;
    expect(error).toBeInstanceOf(type);
    expect(error).toBeInstanceOf(errors.FencedLockError);
    expect(error).toMatchObject({ code, name: type.name, key, ...fields });
    expect(error.message).toContain(`docs/errors.md#${code.toLowerCase()}`);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code, name: type.name, message: error.message });
    expect((await shop.row(id))?.quantity).toBe(left);
  });

  test('NOT_INSTALLED where the role has no right says so, of operators, too', async () => {
    const { own, url } = await ownDatabase();
    await own.admin.query('CREATE SCHEMA fenced_lock');
    await own.admin.query(
      "DO $$ BEGIN CREATE ROLE stranger LOGIN PASSWORD 'x'; EXCEPTION WHEN duplicate_object THEN END $$",
    );
    const stranger = Object.assign(new URL(url), { username: 'stranger', password: 'x' }).href;
    const { prisma } = own.client({ pool: { connectionString: stranger } });
    const { inspect, history } = prisma.$locks;
    const message = expect.stringMatching(/^This role may not use .* GRANT that is missing/);
    for (const call of [
      () => prisma.$withLock('stock:1', () => {}),
      () => inspect('stock:1'),
      () => history('stock:1'),
    ])
      await expect(call()).rejects.toMatchObject({ constructor: errors.NotInstalledError, message });
  });

  test('each has a section in docs/errors.md, and no other has one', () => {
    const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    const sections = [...page.matchAll(/^## (\w+)$/gm)].map(([, section]) => section?.toUpperCase());
    expect(sections.toSorted()).toEqual(Object.keys(CASES).toSorted());
  });

  test('what is thrown inside the function arrives there in the form of Prisma, and is found in it', async () => {
    const { prisma } = shop.client();
    const { key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => {
      const inside = await tx.$executeRawUnsafe('COMMIT').catch((error: unknown) => error);
      expect(inside).not.toBeInstanceOf(errors.FencedLockError);
      expect(errors.toFencedLockError(inside)).toBeInstanceOf(errors.InsideTransactionError);
    });
    await expect(held).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION', key });
    expect(errors.toFencedLockError(new Error('of somebody else'))).toBeUndefined();
  });

  test('an error of the function, and the reason of its signal, come through untouched', async () => {
    const { prisma } = shop.client();
    const { key } = await shop.product(10);
    const noSale = new RangeError('no sale');
    expect(await prisma.$withLock(key, () => Promise.reject(noSale)).catch((error: unknown) => error)).toBe(noSale);
    const given = prisma.$withLock(key, () => {}, { signal: AbortSignal.abort('given up') });
    expect(await given.catch((error: unknown) => error)).toBe('given up');
  });
});
