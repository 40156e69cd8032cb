import { PrismaPg } from '@prisma/adapter-pg';
import { expect, test } from 'vitest';
import { type FenceTx, FenceWorld, FRESHER } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';
import { makeRows, type Rows } from './rows.js';

/** An adapter that lets a test do something just before a statement of a transaction is sent. */
class StoppedPg extends PrismaPg {
  before: (sql: string) => Promise<void> = () => Promise.resolve();

  override async connect() {
    const adapter = await super.connect();
    const before = (sql: string) => this.before(sql);
    const start = adapter.startTransaction.bind(adapter);
    adapter.startTransaction = async (...args) => {
      const transaction = await start(...args);
      const [queryRaw, executeRaw] = [transaction.queryRaw.bind(transaction), transaction.executeRaw.bind(transaction)];
      transaction.queryRaw = async (query) => {
        await before(query.sql);
        return await queryRaw(query);
      };
      transaction.executeRaw = async (query) => {
        await before(query.sql);
        return await executeRaw(query);
      };
      return transaction;
    };
    return adapter;
  }
}

describeWithShop('a row that appears behind the claim, and is fresher by the time of the write', () => {
  const world = new FenceWorld('fence_between');

  const WRITES: Record<string, (tx: FenceTx, rows: Rows) => Promise<unknown>> = {
    updateMany: (tx, { Member }) =>
      tx.member.update({ where: { id: Member }, data: { notes: { updateMany: { where: {}, data: { value: 77 } } } } }),
    deleteMany: (tx, { Member }) => tx.member.update({ where: { id: Member }, data: { notes: { deleteMany: {} } } }),
    'updateMany, from a parent above': (tx, { team, Member }) =>
      tx.team.update({
        where: { id: team },
        data: {
          members: {
            update: { where: { id: Member }, data: { notes: { updateMany: { where: {}, data: { value: 77 } } } } },
          },
        },
      }),
  };

  test.each(Object.entries(WRITES))('%s does not meet it', async (_, write) => {
    const rows = await makeRows(world.admin);
    const adapter = new StoppedPg({ connectionString: world.url });
    const client = world.clientOn(adapter);
    let step = 0;
    adapter.before = async (sql) => {
      if (step === 0 && sql.startsWith('SELECT') && sql.includes('FROM "people"."Note"') && !sql.includes('> ')) {
        step = 1;
        await world.admin.query(`INSERT INTO people."Note" ("memberId", number, name, value) VALUES ($1, 2, $2, 1)`, [
          rows.Member,
          `late ${rows.n}`,
        ]);
      } else if (step === 1 && /^(UPDATE|DELETE).*"Note"/.test(sql)) {
        step = 2;
        await world.admin.query(
          `UPDATE people."Note" SET value = 50, fence = $1 WHERE "memberId" = $2 AND number = 2`,
          [FRESHER, rows.Member],
        );
      }
    };
    await client.$withLock(`between:${rows.n}`, (tx) => write(tx, rows));
    expect(step).toBe(2);
    const { rows: notes } = await world.admin.query(
      'SELECT number, value, fence FROM people."Note" WHERE "memberId" = $1 AND number = 2',
      [rows.Member],
    );
    expect(notes).toEqual([{ number: 2, value: 50, fence: String(FRESHER) }]);
  });
});
