import { expect, test } from 'vitest';
import { ClosedError, type Lock } from '../../src/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

/** Registers a hook of each kind, which notes that it ran. */
function noting(ran: string[], lock: Lock): void {
  lock.onUnknown(() => ran.push('onUnknown'));
  lock.afterRollback(() => ran.push('afterRollback'));
  lock.afterCommit(() => ran.push('afterCommit'));
}

describeWithShop('hooks of a lock', () => {
  const shop = new Shop();

  test('hold nothing: they take the same lock, another one, and write past any lock', async () => {
    const { id, key } = await shop.product(10);
    const other = await shop.product(10);
    const { prisma, events } = shop.client();
    const tokens: bigint[] = [];
    await prisma.$withLock(key, (_, lock) => {
      tokens.push(lock.token);
      lock.afterCommit(() => prisma.$withLock(key, (_, again) => tokens.push(again.token), { reentry: 'throw' }));
      lock.afterCommit(() => prisma.$withLock(other.key, () => tokens.push(0n)));
      lock.afterCommit(() => prisma.order.create({ data: { stockId: id, buyer: 'hook', quantity: 1 } }));
    });
    expect(events).toEqual([]);
    expect(tokens).toHaveLength(3);
    expect(tokens[1]).toBeGreaterThan(tokens[0] as bigint);
    expect(await prisma.order.count({ where: { stockId: id } })).toBe(1);
  });

  test('a timeout: afterRollback; what the function registers when that is over is refused', async () => {
    const { key } = await shop.product(1);
    const goOn = gate();
    const late = gate<unknown>();
    const ran: string[] = [];
    const held = shop.client().prisma.$withLock(
      key,
      async (_, lock) => {
        noting(ran, lock);
        await goOn.opened;
        try {
          lock.afterRollback(() => ran.push('late'));
          late.open(undefined);
        } catch (error) {
          late.open(error);
        }
      },
      // Long enough for a busy machine to begin the function.
      { timeout: 1_000 },
    );
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    goOn.open();
    expect(await late.opened).toBeInstanceOf(ClosedError);
    expect(ran).toEqual(['afterRollback']);
  });

  test('of each run that was rolled back and repeated run, too; afterCommit only of the one that committed', async () => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client();
    const ran: string[] = [];
    let runs = 0;
    await prisma.$withLock(
      key,
      async (tx, lock) => {
        const run = ++runs;
        lock.afterCommit(() => ran.push(`commit ${run}`));
        lock.afterRollback((error) => ran.push(`rollback ${run}: ${(error as { code?: string }).code}`));
        await tx.stock.findUniqueOrThrow({ where: { id } });
        if (run < 3) await shop.admin.query('UPDATE "Stock" SET quantity = quantity + 1 WHERE id = $1', [id]);
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      },
      { retries: 5, isolationLevel: 'RepeatableRead' },
    );
    expect(ran).toEqual(['rollback 1: P2034', 'rollback 2: P2034', 'commit 3']);
  });

  test('of calls that joined run with the outermost one, in their order', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const ran: string[] = [];
    await prisma.$withLock(key, async (_, outer) => {
      outer.afterCommit(() => ran.push('outer, before'));
      await prisma.$withLock(key, (_, inner) => inner.afterCommit(() => ran.push('inner')));
      ran.push('the inner one has ended');
      outer.afterCommit(() => ran.push('outer, after'));
    });
    expect(ran).toEqual(['the inner one has ended', 'outer, before', 'inner', 'outer, after']);
  });
});

describeWithShop('an error in a hook', () => {
  const shop = new Shop();

  const failing = (lock: Lock, ran: string[]) => {
    lock.afterCommit(() => {
      throw new Error('no mail');
    });
    lock.afterCommit(() => Promise.reject(new Error('no message')));
    lock.afterCommit(() => ran.push('last'));
  };

  test('is an event, the others run, and the call resolves', async () => {
    const { key } = await shop.product(1);
    const { prisma, events } = shop.client();
    const ran: string[] = [];
    const value = await prisma.$withLock(key, (_, lock) => {
      failing(lock, ran);
      return 'sold';
    });
    expect(value).toBe('sold');
    expect(ran).toEqual(['last']);
    const failed = { type: 'hook-failed', key, hook: 'afterCommit' };
    expect(events).toEqual([
      { ...failed, error: new Error('no mail') },
      { ...failed, error: new Error('no message') },
    ]);
  });

  test('of a call that was rolled back is an event in any case: that call rejects with its own error', async () => {
    const { key } = await shop.product(1);
    const { prisma, events } = shop.client();
    const held = prisma.$withLock(
      key,
      (_, lock) => {
        lock.afterRollback(() => Promise.reject(new Error('no mail')));
        throw new Error('no sale');
      },
      { hookErrors: 'throw' },
    );
    await expect(held).rejects.toThrow('no sale');
    expect(events).toEqual([{ type: 'hook-failed', key, hook: 'afterRollback', error: new Error('no mail') }]);
  });
});

describeWithShop('hooks of a handle', () => {
  const shop = new Shop();

  test('belong to one of its transactions; they may begin the next one, and release it', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, events } = shop.client();
    const handle = await prisma.$lock(key);
    const ran: unknown[] = [];
    await handle.$transaction(async (tx, lock) => {
      lock.afterCommit(async () => {
        ran.push('first', handle.remaining() > 0);
        const { quantity } = await handle.$transaction((tx, next) => {
          next.afterCommit(() => ran.push('second'));
          return tx.stock.findUniqueOrThrow({ where: { id } });
        });
        ran.push(quantity);
        await handle.release();
      });
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    expect(ran).toEqual(['first', true, 'second', 9]);
    expect(handle.remaining()).toBe(0);
    expect(events).toEqual([]);
  });
});

describeWithShop('hooks while the client is closed', () => {
  const shop = new Shop();

  test('are waited for', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const [inside, goOn] = [gate(), gate()];
    const steps: string[] = [];
    const held = prisma.$withLock(key, (_, lock) => {
      lock.afterCommit(async () => {
        inside.open();
        await goOn.opened;
        steps.push('hook');
      });
    });
    await inside.opened;
    const closed = prisma.$locks.close().then(() => steps.push('closed'));
    // It would have closed by then.
    await shop.client().prisma.$withLock(key, () => {});
    goOn.open();
    await Promise.all([closed, held]);
    expect(steps).toEqual(['hook', 'closed']);
  });

  test('one that closes it does not wait for itself', async () => {
    const { key } = await shop.product(1);
    const { prisma, events } = shop.client();
    await prisma.$withLock(key, (_, lock) => lock.afterCommit(() => prisma.$disconnect()));
    expect(events).toEqual([]);
  });
});
