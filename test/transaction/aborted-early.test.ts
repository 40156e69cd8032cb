import { tracingChannel } from 'node:diagnostics_channel';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, test } from 'vitest';
import { busy } from '../support/busy.js';
import { eventually } from '../support/eventually.js';
import { FenceWorld } from '../support/fence-world.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a call that is struck before it is admitted', () => {
  const shop = new Shop();
  const world = new FenceWorld('fence_aborted_early', 'allow');

  test('rejects with the reason of its signal, also where that is an error of a database', async () => {
    const { key } = await shop.product(1);
    // Has the key's row, and another lease: as with onRedisUnavailable: 'postgres', or after a flush.
    const other = shop.client({ keyPrefix: 'other:' }).prisma;
    const { prisma } = shop.client();
    const [inside, goOn] = [gate(), gate()];
    const held = other.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const abort = new AbortController();
    const reason = Object.assign(new Error('a write conflict of another call'), { code: 'P2034' });
    const call = prisma.$withLock(key, () => 'in', { signal: abort.signal, waitTime: 2_000 });
    call.catch(() => {});
    await shop.blocked('fenced_lock.admit');
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
    goOn.open();
    await held.catch(() => {});
  });

  test('hears its abort at once where the pool has no connection for it, and gives its lease back', async () => {
    const { key } = await shop.product(1);
    const { prisma, plain } = shop.client({ pool: { max: 1 } });
    const bystander = await busy(plain);
    const abort = new AbortController();
    const since = performance.now();
    const call = prisma.$withLock(key, () => 'in', { signal: abort.signal, maxWait: 20_000 });
    const redis = shop.redis();
    const lease = `fenced-lock:{${key}}:lease`;
    await eventually('it has the lease', async () => (await redis.exists(lease)) === 1);
    abort.abort(new Error('no sale'));
    await expect(call).rejects.toThrow('no sale');
    // An answer of Postgres would be waited for longer than that, and there is none to come.
    expect(performance.now() - since).toBeLessThan(1_900);
    await eventually('it is given back', async () => (await redis.exists(lease)) === 0);
    await bystander.letGo();
    expect(await prisma.$withLock(key, () => 'in')).toBe('in');
  });

  test('does not begin its work behind a list of guards that came late', async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 });
    // The connection knows the tables; the second client does not know the guards.
    await world.clientOn(new PrismaPg(pool)).$withLock('warm', (tx) => tx.word.count());
    const client = world.clientOn(new PrismaPg(pool));
    const session = await world.admin.connect();
    await session.query('BEGIN; LOCK TABLE pg_catalog.pg_trigger IN ACCESS EXCLUSIVE MODE');
    const abort = new AbortController();
    let called = false;
    const held = client.$withLock(
      'late',
      () => {
        called = true;
      },
      { signal: abort.signal },
    );
    held.catch(() => {});
    await eventually('it waits for the list', async () => {
      const { rows } = await world.admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%fenced_lock.guards()%'",
      );
      return rows.length > 0;
    });
    abort.abort(new Error('no sale'));
    await session.query('COMMIT');
    session.release();
    await expect(held).rejects.toThrow('no sale');
    expect(await client.$withLock('next', () => 'in')).toBe('in');
    expect(called).toBe(false);
    await pool.end();
  });

  test('does not begin its work where whoever traces the admission gives it up', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    // The list of guards is known from here on.
    await prisma.$withLock(key, () => 'in');
    const abort = new AbortController();
    const admission = tracingChannel('fenced-lock:admission');
    const giveUp = { asyncEnd: () => abort.abort(new Error('no sale')) };
    let called = false;
    admission.subscribe(giveUp as never);
    try {
      const call = prisma.$withLock(
        key,
        () => {
          called = true;
        },
        { signal: abort.signal },
      );
      await expect(call).rejects.toThrow('no sale');
    } finally {
      admission.unsubscribe(giveUp as never);
    }
    expect(called).toBe(false);
    expect(await prisma.$withLock(key, () => 'in')).toBe('in');
  });
});
