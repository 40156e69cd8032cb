import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { proxied } from '../support/proxied.js';
import { atWork, describeWithShop, Shop, type ShopClient, STAYS, sale } from '../support/shop.js';
import { slowCommit } from './slow-commit.js';

describeWithShop('turns that follow each other on one connection', () => {
  const shop = new Shop();

  const sell = (prisma: ShopClient, key: string, id: number) => prisma.$withLock(key, sale(id));

  const LEVELS = [undefined, 'RepeatableRead', 'Serializable'] as const;

  test.each(LEVELS)('each sees the one before it, on the same connection, at isolation level %s', async (level) => {
    const { id, key } = await shop.product(40);
    const { prisma } = shop.client(STAYS);
    const pids = new Set<number>();
    const options = level === undefined ? {} : { isolationLevel: level };
    const next = () =>
      prisma.$withLock(
        key,
        async (tx) => {
          const [{ pid }] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
          pids.add(pid);
          await sale(id)(tx);
        },
        options,
      );
    const turn = await atWork(prisma, key);
    const others = Array.from({ length: 12 }, next);
    turn.goOn();
    await Promise.all(others);
    expect((await shop.row(id))?.quantity).toBe(28);
    expect(pids.size).toBe(1);
  });

  test('a COMMIT that did not reach Postgres: it is rolled back, and the next one goes on', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const turn = await atWork(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 0 } }));
    const next = sell(prisma, key, id);
    const cut = proxy.cutBeforeCommit();
    turn.goOn();
    await cut;
    await expect(turn.held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect(await next).toBe(9);
  });

  test('a COMMIT whose answer was lost: it is found to have held, and the next one sees it', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const turn = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      return 'sold';
    });
    const next = sell(prisma, key, id);
    const cut = proxy.cutAfterCommit();
    turn.goOn();
    await cut;
    expect(await turn.held).toBe('sold');
    expect(await next).toBe(4);
  });

  test.each(['23514', '40001'])('a COMMIT that is refused with %s: the next one begins by itself', async (code) => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client(STAYS);
    const slow = await slowCommit(shop, code);
    await slow.goOn();
    const turn = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      await tx.$executeRawUnsafe(slow.insert(true));
    });
    const next = sell(prisma, key, id);
    turn.goOn();
    await expect(turn.held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code } });
    expect(await next).toBe(9);
  });

  test('behind a COMMIT whose outcome is being looked up, all go on', async () => {
    const { id, key } = await shop.product(10);
    // The rescue connection has no server, so the outcome is looked up for as long as that may take.
    const nowhere = 'postgresql://nobody@127.0.0.1:1/none';
    const { prisma, proxy } = await proxied(shop, inject('postgres').app, STAYS, nowhere);
    const turn = await atWork(prisma, key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    let over = false;
    const told = () => {
      over = true;
    };
    turn.held.then(told, told);
    const others = Array.from({ length: 4 }, () => sell(prisma, key, id));
    const cut = proxy.cutAfterCommit();
    turn.goOn();
    await cut;
    await Promise.all(others);
    expect(over).toBe(false);
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  // The connection belongs to the turn before, too, until its COMMIT is answered.
  test('one behind a long COMMIT that gives up does not break that COMMIT', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, events } = shop.client(STAYS);
    const slow = await slowCommit(shop);
    const turn = await atWork(prisma, key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await tx.$executeRawUnsafe(slow.insert());
      return 'sold';
    });
    const caller = new AbortController();
    const next = prisma.$withLock(key, sale(id), { signal: caller.signal });
    turn.goOn();
    await shop.blocked('COMMIT');
    caller.abort(new Error('enough'));
    await expect(next).rejects.toThrow();
    // Longer than an admission that was given up may stay without an answer before its connection is closed.
    await pause(3_000);
    await slow.goOn();
    expect(await turn.held).toBe('sold');
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(events.map(({ type }) => type)).not.toContain('commit-resolved');
  });

  test('a bystander that waits for the only connection of the pool has it between two turns', async () => {
    const { id, key } = await shop.product(100);
    const { prisma, plain } = shop.client({ ...STAYS, pool: { max: 1 } });
    const turn = await atWork(prisma, key);
    let done = 0;
    const turns = Array.from({ length: 64 }, () => sell(prisma, key, id).then(() => done++));
    const bystander = plain.stock.count().then(() => done);
    turn.goOn();
    expect(await bystander).toBeLessThan(8);
    await Promise.all(turns);
    expect((await shop.row(id))?.quantity).toBe(36);
  });

  test('backends that are ended at any moment: who succeeded has sold one, and nobody else', async () => {
    const { id, key } = await shop.product(1_000);
    const application_name = `chain ${randomUUID()}`;
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const pool = shop.pool({ max: 4, application_name });
    pool.on('connect', (connection) => connection.on('error', () => {}));
    const { prisma } = shop.client({ adapter: new PrismaPg(pool), rescue, ...STAYS });
    const settled = Promise.allSettled(Array.from({ length: 80 }, () => sell(prisma, key, id)));
    let over = false;
    void settled.then(() => {
      over = true;
    });
    while (!over) {
      await pause(Math.random() * 25);
      await shop.admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [
        application_name,
      ]);
    }
    const sold = (await settled).filter(({ status }) => status === 'fulfilled').length;
    expect((await shop.row(id))?.quantity).toBe(1_000 - sold);
  });
});
