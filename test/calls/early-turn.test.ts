import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { slowCommit } from './slow-commit.js';

describeWithShop('early turns', () => {
  const shop = new Shop();

  /** A client whose sessions in Postgres can be told from those of everybody else; `sees` counts them. */
  function watched() {
    const application_name = `turns ${randomUUID()}`;
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const { prisma } = shop.client({ pool: { application_name }, rescue });
    const sees = async (statement: string, event: string) => {
      const { rowCount } = await shop.admin.query(
        `SELECT 1 FROM pg_stat_activity
         WHERE application_name = $1 AND position($2 IN query) > 0 AND wait_event_type = 'Lock' AND wait_event = $3`,
        [application_name, statement, event],
      );
      return rowCount ?? 0;
    };
    return {
      prisma,
      sees,
      /** Transactions, whatever they do. */
      working: async () => {
        const { rowCount } = await shop.admin.query(
          'SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND xact_start IS NOT NULL',
          [application_name],
        );
        return rowCount ?? 0;
      },
      admissionWaits: () =>
        eventually('an admission waits', async () => (await sees('fenced_lock.admit(', 'transactionid')) > 0),
      commitWaits: () => eventually('a COMMIT waits', async () => (await sees('COMMIT', 'advisory')) > 0),
    };
  }

  test('begin while the COMMIT of the one before is under way: the admission waits in Postgres', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, admissionWaits, commitWaits, sees } = watched();
    const slow = await slowCommit(shop);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.$executeRawUnsafe(slow.insert());
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    const seen: number[] = [];
    const next = () =>
      prisma.$withLock(key, async (tx) => {
        seen.push((await tx.stock.findUniqueOrThrow({ where: { id } })).quantity);
      });
    const waiters = [next(), next()];
    await commitWaits();
    await admissionWaits();
    // One successor, and no more.
    expect(await sees('fenced_lock.admit(', 'transactionid')).toBe(1);
    expect(seen).toEqual([]);
    // Nobody else has the key: it goes to other processes only when all of this is over.
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    await slow.goOn();
    await Promise.all([held, ...waiters]);
    expect(seen).toEqual([9, 9]);
  });

  test.each(['the one before', 'the next one'])(
    'do not begin early where %s reads from a snapshot, which would be too old',
    async (which) => {
      const { id, key } = await shop.product(10);
      const { prisma, commitWaits, working } = watched();
      const slow = await slowCommit(shop);
      const isolationLevel = 'RepeatableRead';
      const held = prisma.$withLock(
        key,
        async (tx) => {
          await tx.$executeRawUnsafe(slow.insert());
          await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        },
        which === 'the one before' ? { isolationLevel } : {},
      );
      const next = prisma.$withLock(
        key,
        async (tx) => (await tx.stock.findUniqueOrThrow({ where: { id } })).quantity,
        which === 'the next one' ? { isolationLevel } : {},
      );
      await commitWaits();
      // Many times as long as an early one takes to get to Postgres.
      for (let look = 0; look < 100; look++) expect(await working()).toBe(1);
      await slow.goOn();
      await held;
      expect(await next).toBe(9);
    },
  );

  test('go on after a COMMIT that was refused, whose successor had begun, and which it does not see', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, admissionWaits, commitWaits } = watched();
    const slow = await slowCommit(shop);
    const held = prisma
      .$withLock(key, async (tx) => {
        await tx.$executeRawUnsafe(slow.insert(true));
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      })
      .catch((error: unknown) => error);
    const next = prisma.$withLock(key, async (tx) => (await tx.stock.findUniqueOrThrow({ where: { id } })).quantity);
    await commitWaits();
    await admissionWaits();
    await slow.goOn();
    expect(await held).toMatchObject({ cause: { originalCode: '23514' } });
    expect(await next).toBe(10);
  });
});
