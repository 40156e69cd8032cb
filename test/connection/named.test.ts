import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { StaleTokenError } from '../../src/index.js';
import { describeWithShop, Shop, sale } from '../support/shop.js';

describeWithShop('statements that the adapter prepares under names', () => {
  const shop = new Shop();

  /** A name for each text, as a cache of statements has it. */
  function naming() {
    const names = new Map<string, string>();
    const statementNameGenerator = ({ sql }: { sql: string }) => {
      const name = names.get(sql) ?? `s${names.size}`;
      names.set(sql, name);
      return name;
    };
    const adapter = new PrismaPg({ connectionString: inject('postgres').app, max: 1 }, { statementNameGenerator });
    return { ...shop.client({ adapter }), names };
  }

  test('are as safe as others: no update is lost, and a stale one is refused', async () => {
    const { id, key } = await shop.product(10);
    const { plain, prisma, names } = naming();
    const sell = () =>
      prisma.$withLock(key, async (tx, lock) => {
        await sale(id)(tx);
        return lock.token;
      });
    const contender = shop.client().prisma;
    // On one connection: from the second time on, each statement is only bound.
    for (let turn = 0; turn < 4; turn++) {
      await sell();
      await contender.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    }
    const token = await sell();
    expect(await shop.row(id)).toEqual({ quantity: 1, fence: token });
    const [{ prepared }] = await plain.$queryRaw<[{ prepared: number }]>`
      SELECT count(*)::int AS prepared FROM pg_prepared_statements`;
    expect(prepared).toBeGreaterThan(2);
    expect(names.size).toBeGreaterThanOrEqual(prepared);
    await shop.admin.query('UPDATE "Stock" SET fence = fence + 1000000 WHERE id = $1', [id]);
    await expect(sell()).rejects.toBeInstanceOf(StaleTokenError);
  });
});
