import { expect, test } from 'vitest';
import { type FenceTx, FenceWorld } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';
import { makeRows, type Rows, snapshot } from './rows.js';

const value = { value: 77 };
/** A write of the one model here that has no guard. */
const badge = { badge: { update: value } };

/** Guarded rows lie between. */
const REACHING: Readonly<Record<string, (tx: FenceTx, rows: Rows) => Promise<unknown>>> = {
  'by an update': (tx, { team, Member }) =>
    tx.team.update({ where: { id: team }, data: { members: { update: { where: { id: Member }, data: badge } } } }),
  'by one of several updates': (tx, { team, Member, loner }) =>
    tx.team.update({
      where: { id: team },
      data: {
        members: {
          update: [
            { where: { id: loner }, data: value },
            { where: { id: Member }, data: badge },
          ],
        },
      },
    }),
  'by an update to one': (tx, { visit }) =>
    tx.visit.update({ where: { id: visit }, data: { host: { update: badge } } }),
  'by an update to one, with data': (tx, { visit }) =>
    tx.visit.update({ where: { id: visit }, data: { host: { update: { data: badge } } } }),
  'by the update of an upsert': (tx, { visit, n }) =>
    tx.visit.update({
      where: { id: visit },
      data: { host: { upsert: { update: badge, create: { name: `x ${n}`, value: 1 } } } },
    }),
  'by the create of an upsert': (tx, { visit, n, Badge }) =>
    tx.visit.update({
      where: { id: visit },
      data: {
        host: {
          upsert: { update: value, create: { name: `x ${n}`, value: 1, badge: { connect: { id: Badge } } } },
        },
      },
    }),
  'by a create': (tx, { n, Badge }) =>
    tx.team.create({
      data: { name: `x ${n}`, members: { create: [{ name: `x ${n}`, ...value, badge: { connect: { id: Badge } } }] } },
    }),
  'by a connectOrCreate': (tx, { team, n, Badge }) =>
    tx.team.update({
      where: { id: team },
      data: {
        members: {
          connectOrCreate: {
            where: { name: `x ${n}` },
            create: { name: `x ${n}`, ...value, badge: { connect: { id: Badge } } },
          },
        },
      },
    }),
  'three deep': (tx, { visit, Member }) =>
    tx.visit.update({
      where: { id: visit },
      data: { host: { update: { boss: { update: { fans: { update: { where: { id: Member }, data: badge } } } } } } },
    }),
};

describeWithShop('a nested write that reaches the one model without a guard', () => {
  const world = new FenceWorld('fence_nested', 'allow', ['Member', 'Desk', 'Note', 'Tag', 'Mascot', 'Word']);

  test.each(Object.entries(REACHING))('is refused before anything of it is sent: %s', async (_, write) => {
    const rows = await makeRows(world.admin);
    const before = await snapshot(world.admin, rows);
    const error = await world
      .client()
      .$withLock(`nested:${rows.n}`, (tx) => write(tx, rows))
      .catch((error: unknown) => error);
    expect(error).toMatchObject({
      code: 'INVALID_OPTION',
      option: 'Member.badge',
      message: expect.stringContaining('npx fenced-lock add-fence Badge'),
    });
    expect(await snapshot(world.admin, rows)).toEqual(before);
  });

  test('and one that does not reach it goes through, with the token in what it wrote', async () => {
    const rows = await makeRows(world.admin);
    const { team, Member } = rows;
    const token = await world.client().$withLock(`nested:${rows.n}`, async (tx, lock) => {
      await tx.team.update({
        where: { id: team },
        data: {
          members: {
            update: { where: { id: Member }, data: { ...value, notes: { updateMany: { where: {}, data: value } } } },
          },
        },
      });
      return lock.token;
    });
    const { rows: notes } = await world.admin.query('SELECT value, fence FROM people."Note" WHERE "memberId" = $1', [
      Member,
    ]);
    expect(notes).toEqual([{ value: 77, fence: String(token) }]);
  });
});
