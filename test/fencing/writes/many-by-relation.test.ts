import { expect, test } from 'vitest';
import { StaleTokenError } from '../../../src/index.js';
import { describeOfEachKind, ofKind } from '../../support/client-kinds.js';
import { type FenceTx, FenceWorld, FRESHER } from '../../support/fence-world.js';

type Write = (tx: FenceTx, boss: number) => Promise<{ readonly count: number } | readonly unknown[]>;

/** Writes of a boss and of who reports to it: a report does not match any more when the boss was written. */
const WRITES: Readonly<Record<'updateMany' | 'updateManyAndReturn' | 'deleteMany', Write>> = {
  updateMany: (tx, boss) =>
    tx.member.updateMany({ where: { OR: [{ id: boss }, { boss: { id: boss, value: 1 } }] }, data: { value: 2 } }),
  updateManyAndReturn: (tx, boss) =>
    tx.member.updateManyAndReturn({
      where: { OR: [{ id: boss }, { boss: { id: boss, value: 1 } }] },
      data: { value: 2 },
    }),
  deleteMany: (tx, boss) => tx.member.deleteMany({ where: { OR: [{ id: boss }, { boss: { id: boss } }] } }),
};

describeOfEachKind('rows that are written by what a relation leads to', (kind) => {
  const world = new FenceWorld(`fence_by_relation_${kind}`, undefined, [], kind);

  /** A boss, and one who reports to it. */
  async function pair(name: string, fence: bigint) {
    const boss = await world.client().member.create({ data: { name: `boss of ${name}`, value: 1 } });
    const report = await world.client().member.create({ data: { name, value: 1, bossId: boss.id, fence } });
    return { boss: boss.id, rows: { id: { in: [boss.id, report.id] } } };
  }

  test.each(Object.entries(WRITES))(
    'a fresher one that the write keeps from matching is not skipped: %s',
    async (name, write) => {
      const { boss, rows } = await pair(`fresher, ${name}`, FRESHER);
      const held = world.client().$withLock(`member:${boss}`, (tx) => write(tx, boss));
      await expect(held).rejects.toBeInstanceOf(StaleTokenError);
      expect(await world.client().member.count({ where: { ...rows, value: 1 } })).toBe(2);
    },
  );

  test.each(Object.entries(WRITES))('all are written if none is fresher: %s', async (name, write) => {
    const { boss, rows } = await pair(`as fresh, ${name}`, 0n);
    const written = await world.client().$withLock(`member:${boss}`, (tx) => write(tx, boss));
    expect('count' in written ? written.count : written.length).toBe(2);
    expect(await world.client().member.count({ where: { ...rows, value: 1 } })).toBe(0);
  });

  test('they are written before what is called after them', async () => {
    const { boss, rows } = await pair('first', 0n);
    await world
      .client()
      .$withLock(`member:${boss}`, (tx) =>
        Promise.all([
          WRITES.updateMany(tx, boss),
          tx.member.updateMany({ where: { ...rows, value: 2 }, data: { value: 3 } }),
        ]),
      );
    expect(await world.client().member.count({ where: { ...rows, value: 3 } })).toBe(2);
  });

  test('a condition on columns takes no look before the write, however it is combined', async () => {
    const statements: string[] = [];
    const client = ofKind(
      kind,
      world.loggedClient((text) => statements.push(text)),
    );
    const { boss } = await pair('combined', 0n);
    const where = { AND: [{ value: 1 }, { OR: [{ id: boss }, { NOT: { value: { gt: 0 } } }] }] };
    const sent = (write: (tx: FenceTx) => Promise<unknown>) =>
      client.$withLock(`member:${boss}`, async (tx) => {
        await tx.member.count();
        statements.length = 0;
        await write(tx);
        return statements.map((text) => text.slice(0, 6));
      });
    expect(await sent((tx) => tx.member.updateMany({ where, data: { name: 'combined: one' } }))).toEqual([
      'UPDATE',
      'SELECT',
    ]);
    const one = { where: { id: boss, ...where }, data: { value: 4 } };
    expect(await sent((tx) => tx.member.update(one))).toEqual(['UPDATE']);
  });
});
