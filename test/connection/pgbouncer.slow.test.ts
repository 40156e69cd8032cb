import { PrismaPg } from '@prisma/adapter-pg';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { TransactionAbortedError } from '../../src/index.js';
import { sellOne } from '../call/handle-work.js';
import { isOpen, LEASE, startHolder } from '../promises/holder.js';
import { expectTold, LOST_COMMITS } from '../promises/lost-commits.js';
import { busy } from '../support/busy.js';
import { eventually } from '../support/eventually.js';
import { proxied } from '../support/proxied.js';
import {
  type PgBouncer,
  pgBouncerFollowsPrepared,
  pgBouncerUnavailable,
  startPgBouncer,
} from '../support/servers/index.js';
import { describeWithShop, gate, Shop, type ShopClient, type ShopOptions, sale } from '../support/shop.js';

/** Fewer server connections than clients that want one: they pass from one to the other all the time. */
const FEW = 3;

const SESSION = `SELECT pg_backend_pid() AS pid,
  current_setting('statement_timeout') AS statement_timeout,
  current_setting('idle_in_transaction_session_timeout') AS idle_in_transaction_session_timeout,
  current_setting('tcp_user_timeout') AS tcp_user_timeout,
  current_setting('lock_timeout') AS lock_timeout,
  current_setting('synchronous_commit') AS synchronous_commit,
  nullif(current_setting('fenced_lock.token', true), '') AS token,
  nullif(current_setting('fenced_lock.key', true), '') AS key`;

const unavailable = pgBouncerUnavailable();
if (unavailable !== undefined) {
  describe('through PgBouncer in transaction mode', () => test.skip(unavailable, () => {}));
} else {
  throughPgBouncer();
}

function throughPgBouncer(): void {
  describeWithShop('through PgBouncer in transaction mode', () => {
    const direct = () => inject('postgres').app;
    let bouncer: PgBouncer;
    const shop = new Shop(() => {
      const { app, admin } = inject('postgres');
      return { postgres: bouncer.url(app), admin, redis: inject('redis').url as string };
    });
    beforeAll(async () => {
      bouncer = await startPgBouncer([direct()], { default_pool_size: String(FEW) });
    });
    // After the shop has closed its clients: the hooks run in the reverse order of their making.
    afterAll(() => bouncer?.stop());

    const client = (options: ShopOptions = {}) => shop.client(options);

    /** A PgBouncer with one server connection, which all transactions have one after the other. */
    async function narrow(): Promise<string> {
      const one = await startPgBouncer([direct()], { default_pool_size: '1' });
      shop.closeLater(() => one.stop());
      return one.url(direct());
    }

    const holder = (how: 'idle' | 'receiving') => startHolder(shop, bouncer.url(direct()), how);

    test.each([
      ['a wrong user', (url: URL) => Object.assign(url, { username: 'nobody' }), 'authentication failed'],
      [
        'a setting that it does not take',
        (url: URL) => url.searchParams.set('options', '-c jit=off'),
        'unsupported startup',
      ],
    ])('%s is told at once', async (name, change, told) => {
      const url = new URL(bouncer.url(direct()));
      change(url);
      const { prisma } = client({ pool: { connectionString: url.href } });
      const call = prisma.$withLock(`refused:${name}`, () => {}, { waitTime: 3_600_000 });
      await expect(call).rejects.toThrow(told);
    });

    // Before 1.21 there is no such setting, and it does as with 0.
    const FOLLOWS: ReadonlyArray<readonly [most: number, settings: Record<string, string>]> = pgBouncerFollowsPrepared()
      ? [0, 100].map((most) => [most, { max_prepared_statements: String(most) }] as const)
      : [[0, {}]];

    test.each(FOLLOWS)('with max_prepared_statements = %i no lock of hundreds fails', async (_, settings) => {
      const own = await startPgBouncer([direct()], { default_pool_size: String(FEW), ...settings });
      shop.closeLater(() => own.stop());
      const pool = { connectionString: own.url(direct()), max: 4 };
      const buyers = Array.from({ length: 4 }, () => client({ pool }).prisma);
      const products = await Promise.all(Array.from({ length: 8 }, () => shop.product(100)));
      const sell = async (round: number) => {
        for (const [index, { id, key }] of products.entries()) {
          await (buyers[(round + index) % 4] as ShopClient).$withLock(key, sale(id), { waitTime: 60_000 });
        }
      };
      await Promise.all(Array.from({ length: 50 }, (_, round) => sell(round)));
      for (const { id } of products) expect((await shop.row(id))?.quantity).toBe(50);
    });

    test('a handle keeps its token in transactions on different server connections', async () => {
      const { id, key } = await shop.product(10);
      const lock = await client().prisma.$lock(key);
      const pids = new Set<number>();
      for (let sale = 0; sale < FEW; sale++) {
        await sellOne(lock, id);
        const pid = await lock.$transaction(async (tx) => {
          const [own] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
          return own.pid;
        });
        pids.add(pid);
        // Somebody else takes this server connection, and the next transaction has to make do with another one.
        await occupy(pid);
      }
      expect(pids.size).toBe(FEW);
      expect(await shop.row(id)).toEqual({ quantity: 10 - FEW, fence: lock.token });
      await lock.release();
    });

    /** PgBouncer gives out first the server connection that came back last. */
    async function occupy(pid: number): Promise<void> {
      const { plain } = client();
      const inside = gate<number>();
      const done = gate();
      const held = plain.$transaction(
        async (tx) => {
          const [own] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
          inside.open(own.pid);
          await done.opened;
        },
        { timeout: 20_000 },
      );
      onTestFinished(async () => {
        done.open();
        await held;
      });
      expect(await inside.opened).toBe(pid);
    }

    test('nothing of an admission is left on the server connection that the next transaction has', async () => {
      const { key } = await shop.product(10);
      const url = await narrow();
      const { prisma, plain } = client({ pool: { connectionString: url } });
      const bystander = client({ pool: { connectionString: url } }).plain;
      const session = async () => (await bystander.$queryRawUnsafe<[Record<string, unknown>]>(SESSION))[0];
      const before = await session();
      const limited = await prisma.$withLock(
        key,
        async (tx) => (await tx.$queryRawUnsafe<[Record<string, unknown>]>(SESSION))[0],
      );
      expect(limited).toMatchObject({ pid: before['pid'], token: expect.any(String), statement_timeout: '30500ms' });
      expect(await session()).toEqual(before);
      await expect(
        prisma.$withLock(key, () => {
          throw new Error('no sale');
        }),
      ).rejects.toThrow('no sale');
      expect(await session()).toEqual(before);
      const lock = await prisma.$lock(key);
      await lock.$transaction(() => {});
      await lock.release();
      expect(await session()).toEqual(before);
      expect((await plain.$queryRawUnsafe<[Record<string, unknown>]>(SESSION))[0]).toEqual(before);
    });

    describe.each([
      ['past PgBouncer', direct],
      ['through it', () => bouncer.url(direct())],
    ])('with the rescue connection %s', (_, rescueUrl) => {
      test.each(Object.entries(LOST_COMMITS))('the caller is told what became of %s', async (_, loss) => {
        await expectTold(shop, loss, bouncer.url(direct()), rescueUrl());
      });
    });

    /** A holder whose line goes silent while it has the only server connection, with a lease of `leaseTime`. */
    async function silentHolder(rescueUrl: (narrowUrl: string) => string, leaseTime: number) {
      const { id, key } = await shop.product(10);
      const url = await narrow();
      const { prisma, proxy } = await proxied(shop, url, {}, rescueUrl(url));
      const held = prisma.$withLock(
        key,
        async (tx) => {
          await tx.stock.update({ where: { id }, data: { quantity: 0 } });
          proxy.silence();
          await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        },
        { timeout: 300, leaseTime },
      );
      await expect(held).rejects.toThrow();
      const next = client({ pool: { connectionString: url } }).prisma;
      return await next.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }), { maxWait: 15_000 });
    }

    test('a rescue connection past PgBouncer ends a silent holder that has its last server connection', async () => {
      // Longer than the test may take: its own time limits do not end it.
      expect((await silentHolder(direct, 120_000)).quantity).toBe(10);
    });

    test('where the rescue connection finds no server connection left, a silent holder is ended by its lease', async () => {
      expect((await silentHolder((url) => url, LEASE)).quantity).toBe(10);
    });

    test('a caller that finds no server connection in time is refused, and leaves nothing begun behind', async () => {
      const { id, key } = await shop.product(10);
      const url = await narrow();
      const bystander = client({ pool: { connectionString: url } }).plain;
      const { prisma } = client({ pool: { connectionString: url }, rescue: new PrismaPg(direct()) });
      const { letGo } = await busy(bystander);
      const refused = prisma.$withLock(key, () => 'in', { maxWait: 200 });
      // BEGIN and the admission wait in PgBouncer's line together.
      await expect(refused).rejects.toMatchObject({
        code: 'TRANSACTION_ABORTED',
      });
      await letGo();
      // On the only server connection: it has to be free of a transaction that nobody will end.
      const sold = await bystander.stock.update({ where: { id }, data: { quantity: 9 } });
      expect(sold.quantity).toBe(9);
      expect(await prisma.$withLock(key, () => 'in', { maxWait: 10_000 })).toBe('in');
    });

    test('a COMMIT that PgBouncer has and does not pass on is rolled back, and does not land later', async () => {
      const { id, key } = await shop.product(10);
      const own = await startPgBouncer([direct()]);
      shop.closeLater(() => own.stop());
      const rescue = new PrismaPg({ connectionString: direct() });
      const { prisma } = client({ pool: { connectionString: own.url(direct()) }, rescue });
      const held = prisma.$withLock(
        key,
        async (tx) => {
          await tx.stock.update({ where: { id }, data: { quantity: 9 } });
          own.freeze();
        },
        { timeout: 500 },
      );
      await expect(held).rejects.toBeInstanceOf(TransactionAbortedError);
      own.thaw();
      await prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
      expect((await shop.row(id))?.quantity).toBe(10);
    });

    test.each(['idle', 'receiving'] as const)(
      'SIGSTOP, %s: Postgres ends the transaction by itself, with nobody waiting',
      async (how) => {
        const { worker, key } = await holder(how);
        worker.freeze();
        await eventually('the transaction has ended', async () => !(await isOpen(shop, key)));
      },
    );
  });
}
