import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { leaseName } from '../waiting/actors.js';
import { forget, type Handle, registered, sellOne } from './handle-work.js';

describeWithShop('a handle', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('has a token that is registered before it is shown, and higher than all before', async () => {
    const { key } = await shop.product(10);
    const before = await prisma.$withLock(key, (_, lock) => lock.token);
    const lock = await prisma.$lock(key);
    expect(await registered(shop, key)).toEqual({ token: lock.token, holder: lock.toJSON().holders[0] });
    expect(lock.token).toBeGreaterThan(before);
    await lock.release();
  });

  test('that was released does not hear of what becomes of the lease in the next turn', async () => {
    const { key } = await shop.product(1);
    const lock = await prisma.$lock(key, { leaseTime: 1_500 });
    const inside = gate();
    const next = prisma.$withLock(
      key,
      async (_, held) => {
        inside.open();
        await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
      },
      { leaseTime: 1_500 },
    );
    await lock.release();
    await inside.opened;
    await shop.redis().del(leaseName(key));
    await expect(next).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(lock.signal.aborted).toBe(false);
  });

  test('runs its transactions one after the other, in the order in which they were asked for', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    const done: number[] = [];
    let inside = 0;
    const work = async (number: number) => {
      await sellOne(lock, id, async () => {
        inside += 1;
        expect(inside).toBe(1);
        await shop.row(id);
        inside -= 1;
      });
      done.push(number);
    };
    await Promise.all(Array.from({ length: 8 }, (_, number) => work(number)));
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect((await shop.row(id))?.quantity).toBe(2);
    await lock.release();
  });

  test('holds several keys, each with a token of its own, and is admitted for all of them', async () => {
    const [one, two] = [await shop.product(10), await shop.product(10)];
    const lock = await prisma.$lock([one.key, two.key]);
    const tokens = await Promise.all(lock.keys.map((key) => registered(shop, key)));
    expect(lock.toJSON().tokens).toEqual(tokens.map((row) => String(row?.token)));
    expect(lock.token).toBe(tokens[1]?.token);
    await lock.$transaction(async (tx) => {
      for (const { id } of [one, two]) await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    expect([await shop.row(one.id), await shop.row(two.id)]).toEqual(
      Array.from({ length: 2 }, () => ({ quantity: 9, fence: lock.token })),
    );
    // One of them superseded is all of them stale.
    await forget(shop, one.key);
    await shop.client().prisma.$withLock(one.key, () => {});
    await expect(sellOne(lock, two.id)).rejects.toMatchObject({ code: 'STALE_TOKEN', key: one.key });
    await lock.release();
  });
});

describeWithShop('the release of a handle', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('waits for the transactions that were asked for before, and refuses later ones', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    const goOn = gate();
    const steps: string[] = [];
    const running = sellOne(lock, id, () => goOn.opened).then(() => steps.push('first'));
    const queued = sellOne(lock, id).then(() => steps.push('second'));
    const releases = [lock.release(), lock.release(), lock[Symbol.asyncDispose]()];
    const released = Promise.all(releases).then(() => steps.push('released'));
    await expect(lock.$transaction(() => 'late')).rejects.toMatchObject({ code: 'CLOSED', key });
    expect(lock.remaining()).toBe(0);
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    goOn.open();
    await Promise.all([running, queued, released]);
    expect(steps).toEqual(['first', 'second', 'released']);
    expect((await shop.row(id))?.quantity).toBe(8);
    await lock.release();
  });

  test('works from any other async context than the one that took it', async () => {
    const { id, key } = await shop.product(10);
    const other = await shop.product(10);
    const contexts = new AsyncLocalStorage<string>();
    const queue = gate<Handle>();
    const consumer = contexts.run('consumer', async () => {
      const lock = await queue.opened;
      await sellOne(lock, id);
      // Also where that holds a lock of its own.
      await prisma.$withLock(other.key, () => lock.release());
    });
    await contexts.run('producer', async () => queue.open(await prisma.$lock(key)));
    await consumer;
    expect(await shop.client().prisma.$withLock(key, () => 'free')).toBe('free');
    expect((await shop.row(id))?.quantity).toBe(9);
  });
});

describeWithShop('a handle that begins no transaction for days', () => {
  const shop = new Shop();

  /** As if its row had last been written two days ago. */
  async function age(...keys: string[]): Promise<void> {
    const { rowCount } = await shop.admin.query(
      "UPDATE fenced_lock.admission SET admitted_at = admitted_at - interval '2 days' WHERE key = ANY ($1)",
      [keys],
    );
    expect(rowCount).toBe(keys.length);
  }

  async function isYoung(key: string): Promise<boolean> {
    const { rowCount } = await shop.admin.query(
      "SELECT FROM fenced_lock.admission WHERE key = $1 AND admitted_at > now() - interval '1 hour'",
      [key],
    );
    return rowCount === 1;
  }

  test('keeps the rows of its keys from being collected as idle, and no others', async () => {
    const { prisma } = shop.client();
    const [one, two, stranger] = [await shop.product(10), await shop.product(10), await shop.product(10)];
    await prisma.$withLock(stranger.key, () => {});
    const lock = await prisma.$lock([one.key, two.key], { leaseTime: 2_000 });
    await age(one.key, two.key, stranger.key);
    for (const { key } of [one, two]) await eventually('its row is young', () => isYoung(key));
    // Nobody has it: it may go.
    expect(await isYoung(stranger.key)).toBe(false);
    await sellOne(lock, one.id);
    await lock.release();
  });
});
