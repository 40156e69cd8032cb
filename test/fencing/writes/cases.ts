import type { Fenced, FenceTx } from '../../support/fence-world.js';
import type { Rows } from './rows.js';

/** One shape of one operation, on one row of a fenced model. */
export interface Case {
  readonly name: string;
  /** The model of the row that it writes. */
  readonly target: Fenced;
  readonly write: (tx: FenceTx, rows: Rows) => Promise<unknown>;
  /** What comes of it where the row is missing: Prisma's own code, or `resolves`. */
  readonly missing: string;
  /** Why it is refused where there is no guard. */
  readonly refused?: 'limit' | 'nested';
}

type Line = readonly [string, Fenced, Case['write'], string, 'limit'?];

const value = { value: 77 };
const note = ({ Note }: Rows) => ({ memberId_number: { memberId: Note, number: 1 } });
const member = (rows: Rows) => ({ id: rows.Member });

const direct = (
  [
    ['update', 'Member', (tx, r) => tx.member.update({ where: member(r), data: value }), 'P2025'],
    [
      'update, select',
      'Member',
      (tx, r) => tx.member.update({ where: member(r), data: value, select: { id: true, notes: true } }),
      'P2025',
    ],
    [
      'update, include',
      'Member',
      (tx, r) => tx.member.update({ where: member(r), data: value, include: { notes: true, desk: true } }),
      'P2025',
    ],
    [
      'update, omit',
      'Member',
      (tx, r) => tx.member.update({ where: member(r), data: value, omit: { fence: true } }),
      'P2025',
    ],
    [
      'update, relation filter',
      'Member',
      (tx, r) => tx.member.update({ where: { ...member(r), notes: { some: { number: 1 } } }, data: value }),
      'P2025',
    ],
    [
      'update, AND',
      'Member',
      (tx, r) =>
        tx.member.update({
          where: { ...member(r), AND: [{ OR: [{ team: { is: { id: r.team } } }, { value: 3 }] }] },
          data: value,
        }),
      'P2025',
    ],
    [
      'update, fence in where',
      'Member',
      (tx, r) => tx.member.update({ where: { ...member(r), fence: { gte: 0 } }, data: value, include: { desk: true } }),
      'P2025',
    ],
    ['updateMany', 'Member', (tx, r) => tx.member.updateMany({ where: member(r), data: value }), 'resolves'],
    [
      'updateMany, relation filter',
      'Member',
      (tx, r) => tx.member.updateMany({ where: { desk: { is: { id: r.Desk } } }, data: value }),
      'resolves',
    ],
    [
      'updateMany, limit',
      'Member',
      (tx, r) => tx.member.updateMany({ where: member(r), data: value, limit: 1 }),
      'resolves',
      'limit',
    ],
    [
      'updateManyAndReturn',
      'Member',
      (tx, r) => tx.member.updateManyAndReturn({ where: member(r), data: value }),
      'resolves',
    ],
    [
      'updateManyAndReturn, include',
      'Member',
      (tx, r) => tx.member.updateManyAndReturn({ where: member(r), data: value, include: { team: true } }),
      'resolves',
    ],
    [
      'upsert',
      'Member',
      (tx, r) => tx.member.upsert({ where: member(r), update: value, create: { name: `new ${r.n}`, value: 1 } }),
      'resolves',
    ],
    [
      'upsert, native form',
      'Tag',
      (tx, r) =>
        tx.tag.upsert({ where: { name: `tag ${r.n}` }, update: value, create: { name: `tag ${r.n}`, value: 1 } }),
      'resolves',
    ],
    [
      'upsert, include',
      'Member',
      (tx, r) =>
        tx.member.upsert({
          where: member(r),
          update: value,
          create: { name: `new ${r.n}`, value: 1 },
          include: { notes: true },
        }),
      'resolves',
    ],
    ['delete', 'Tag', (tx, r) => tx.tag.delete({ where: { id: r.Tag } }), 'P2025'],
    ['delete, include', 'Tag', (tx, r) => tx.tag.delete({ where: { id: r.Tag }, include: { members: true } }), 'P2025'],
    ['delete, select', 'Tag', (tx, r) => tx.tag.delete({ where: { id: r.Tag }, select: { id: true } }), 'P2025'],
    [
      'delete, relation filter',
      'Badge',
      (tx, r) => tx.badge.delete({ where: { id: r.Badge, member: { is: member(r) } } }),
      'P2025',
    ],
    ['deleteMany', 'Tag', (tx, r) => tx.tag.deleteMany({ where: { id: r.Tag } }), 'resolves'],
    ['deleteMany, limit', 'Tag', (tx, r) => tx.tag.deleteMany({ where: { id: r.Tag }, limit: 1 }), 'resolves', 'limit'],
    ['compound key: update', 'Note', (tx, r) => tx.note.update({ where: note(r), data: value }), 'P2025'],
    [
      'compound key by name: update, include',
      'Note',
      (tx, r) =>
        tx.note.update({
          where: { title: { name: `note ${r.n}`, number: 1 } },
          data: value,
          include: { member: true },
        }),
      'P2025',
    ],
    [
      'compound key: upsert',
      'Note',
      (tx, r) =>
        tx.note.upsert({ where: note(r), update: value, create: { memberId: r.Note, number: 1, name: 'x', value: 1 } }),
      'resolves',
    ],
    ['compound key: delete', 'Note', (tx, r) => tx.note.delete({ where: note(r) }), 'P2025'],
    ['mapped: update', 'Desk', (tx, r) => tx.desk.update({ where: { id: r.Desk }, data: value }), 'P2025'],
    [
      'mapped: update, include',
      'Desk',
      (tx, r) => tx.desk.update({ where: { id: r.Desk }, data: value, include: { member: true } }),
      'P2025',
    ],
    [
      'mapped: updateMany',
      'Desk',
      (tx, r) => tx.desk.updateMany({ where: { name: `desk ${r.n}` }, data: value }),
      'resolves',
    ],
    ['mapped: deleteMany', 'Desk', (tx, r) => tx.desk.deleteMany({ where: { name: `desk ${r.n}` } }), 'resolves'],
    [
      'words: update',
      'Word',
      (tx, r) =>
        tx.word.update({
          where: { id: r.Word },
          data: { ...value, create: 1, set: { set: 2 }, delete: 3, data: { where: 1 } },
        }),
      'P2025',
    ],
    [
      'words: updateMany',
      'Word',
      (tx, r) => tx.word.updateMany({ where: { id: r.Word, where: 0, is: { lt: 1 } }, data: { ...value, limit: 4 } }),
      'resolves',
    ],
  ] as readonly Line[]
).map(toCase);

const nested = (
  [
    [
      'upsert, nested in both',
      'Member',
      (tx, r) =>
        tx.member.upsert({
          where: member(r),
          update: { ...value, notes: { create: { number: 2, name: `n ${r.n}`, value: 1 } } },
          create: { name: `new ${r.n}`, value: 1, notes: { create: { number: 2, name: `n ${r.n}`, value: 1 } } },
        }),
      'resolves',
    ],
    [
      'update with a new child',
      'Member',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: { ...value, notes: { create: { number: 2, name: `n ${r.n}`, value: 1 } } },
        }),
      'P2025',
    ],
    [
      'list: update',
      'Note',
      (tx, r) => tx.member.update({ where: member(r), data: { notes: { update: { where: note(r), data: value } } } }),
      'P2025',
    ],
    [
      'list: update of several',
      'Note',
      (tx, r) => tx.member.update({ where: member(r), data: { notes: { update: [{ where: note(r), data: value }] } } }),
      'P2025',
    ],
    [
      'list: updateMany',
      'Note',
      (tx, r) =>
        tx.member.update({ where: member(r), data: { notes: { updateMany: { where: { number: 1 }, data: value } } } }),
      'resolves',
    ],
    [
      'list: upsert',
      'Note',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: {
            notes: { upsert: { where: note(r), update: value, create: { number: 1, name: `x ${r.n}`, value: 1 } } },
          },
        }),
      'resolves',
    ],
    [
      'list: delete',
      'Note',
      (tx, r) => tx.member.update({ where: member(r), data: { notes: { delete: note(r) } } }),
      'P2017',
    ],
    [
      'list: deleteMany',
      'Note',
      (tx, r) => tx.member.update({ where: member(r), data: { notes: { deleteMany: [{ number: 1 }] } } }),
      'resolves',
    ],
    [
      'list: deleteMany of all',
      'Note',
      (tx, r) => tx.member.update({ where: member(r), data: { notes: { deleteMany: {} } } }),
      'resolves',
    ],
    [
      'list: connect',
      'Member',
      (tx, r) => tx.member.update({ where: { id: r.loner }, data: { reports: { connect: member(r) } } }),
      'P2018',
    ],
    [
      'list: connect to a new parent',
      'Member',
      (tx, r) => tx.team.create({ data: { name: `new ${r.n}`, members: { connect: [member(r)] } } }),
      'P2018',
    ],
    [
      'list: connectOrCreate',
      'Member',
      (tx, r) =>
        tx.team.update({
          where: { id: r.team },
          data: {
            members: {
              connectOrCreate: { where: { name: `member ${r.n}` }, create: { name: `member ${r.n}`, value: 1 } },
            },
          },
        }),
      'resolves',
    ],
    [
      'list: disconnect',
      'Member',
      (tx, r) => tx.team.update({ where: { id: r.team }, data: { members: { disconnect: member(r) } } }),
      'resolves',
    ],
    [
      'list: set',
      'Member',
      (tx, r) => tx.team.update({ where: { id: r.team }, data: { members: { set: [] } } }),
      'resolves',
    ],
    [
      'self: update of a report',
      'Member',
      (tx, r) =>
        tx.member.update({ where: { id: r.boss }, data: { reports: { update: { where: member(r), data: value } } } }),
      'P2025',
    ],
    [
      'self: updateMany of reports',
      'Member',
      (tx, r) =>
        tx.member.update({ where: { id: r.boss }, data: { reports: { updateMany: { where: {}, data: value } } } }),
      'resolves',
    ],
    [
      'self: disconnect of a report',
      'Member',
      (tx, r) => tx.member.update({ where: { id: r.boss }, data: { reports: { disconnect: [member(r)] } } }),
      'resolves',
    ],
    [
      'unfenced parent: update',
      'Member',
      (tx, r) =>
        tx.team.update({ where: { id: r.team }, data: { members: { update: { where: member(r), data: value } } } }),
      'P2025',
    ],
    [
      'unfenced parent: updateMany',
      'Member',
      (tx, r) =>
        tx.team.update({
          where: { name: `team ${r.n}` },
          data: { members: { updateMany: { where: { value: { lt: 1000 } }, data: value } } },
        }),
      'resolves',
    ],
    [
      'unfenced parent: deleteMany',
      'Member',
      (tx, r) => tx.team.update({ where: { id: r.team }, data: { members: { deleteMany: { id: r.Member } } } }),
      'resolves',
    ],
    [
      'unfenced parent: upsert above',
      'Member',
      (tx, r) =>
        tx.team.upsert({
          where: { id: r.team },
          create: { name: `x ${r.n}` },
          update: { members: { update: { where: member(r), data: value } } },
        }),
      'P2025',
    ],
    [
      'one, key here: update',
      'Desk',
      (tx, r) => tx.member.update({ where: member(r), data: { desk: { update: value } } }),
      'P2025',
    ],
    [
      'one, key here: update with where',
      'Desk',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: { desk: { update: { where: { name: `desk ${r.n}` }, data: value } } },
        }),
      'P2025',
    ],
    [
      'one, key here: upsert',
      'Desk',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: { desk: { upsert: { update: value, create: { name: `other ${r.n}`, value: 1 } } } },
        }),
      'resolves',
    ],
    [
      'one, key here: delete',
      'Desk',
      (tx, r) => tx.member.update({ where: member(r), data: { desk: { delete: true } } }),
      'P2025',
    ],
    [
      'one, key here: disconnect writes the parent',
      'Member',
      (tx, r) => tx.member.update({ where: member(r), data: { desk: { disconnect: true } } }),
      'P2025',
    ],
    [
      'one, key here: connect writes the parent',
      'Member',
      (tx, r) => tx.member.update({ where: member(r), data: { team: { connect: { id: r.team } } } }),
      'P2025',
    ],
    [
      'one, key here: connect of what another has',
      'Member',
      (tx, r) => tx.member.update({ where: { id: r.loner }, data: { desk: { connect: { id: r.Desk } } } }),
      'resolves',
    ],
    [
      'one, key here, unfenced parent: update',
      'Member',
      (tx, r) => tx.visit.update({ where: { id: r.visit }, data: { host: { update: value } } }),
      'P2025',
    ],
    [
      'one, key here, unfenced parent: update in data',
      'Member',
      (tx, r) => tx.visit.update({ where: { id: r.visit }, data: { host: { update: { data: value } } } }),
      'P2025',
    ],
    [
      'one, key here, unfenced parent: delete',
      'Member',
      (tx, r) => tx.visit.update({ where: { id: r.visit }, data: { host: { delete: true } } }),
      'P2025',
    ],
    [
      'one, key here, unfenced parent: upsert',
      'Member',
      (tx, r) =>
        tx.visit.update({
          where: { id: r.visit },
          data: { host: { upsert: { update: value, create: { name: `h ${r.n}`, value: 1 } } } },
        }),
      'resolves',
    ],
    [
      'one, key there: update',
      'Badge',
      (tx, r) => tx.member.update({ where: member(r), data: { badge: { update: value } } }),
      'P2025',
    ],
    [
      'one, key there: upsert',
      'Badge',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: { badge: { upsert: { update: value, create: { name: `b ${r.n}`, value: 1 } } } },
        }),
      'resolves',
    ],
    [
      'one, key there: delete',
      'Badge',
      (tx, r) => tx.member.update({ where: member(r), data: { badge: { delete: true } } }),
      'P2025',
    ],
    [
      'one, key there: disconnect',
      'Badge',
      (tx, r) => tx.member.update({ where: member(r), data: { badge: { disconnect: true } } }),
      'resolves',
    ],
    [
      'one, key there: create over another',
      'Badge',
      (tx, r) => tx.member.update({ where: member(r), data: { badge: { create: { name: `b ${r.n}`, value: 1 } } } }),
      'resolves',
    ],
    [
      'one, key there: connect',
      'Badge',
      (tx, r) => tx.member.update({ where: { id: r.loner }, data: { badge: { connect: { id: r.Badge } } } }),
      'P2025',
    ],
    [
      'one, key there: connect to a new parent',
      'Badge',
      (tx, r) => tx.member.create({ data: { name: `new ${r.n}`, value: 1, badge: { connect: { id: r.Badge } } } }),
      'P2025',
    ],
    [
      'one, unfenced parent: update',
      'Mascot',
      (tx, r) => tx.team.update({ where: { id: r.team }, data: { mascot: { update: value } } }),
      'P2025',
    ],
    [
      'one, unfenced parent: delete',
      'Mascot',
      (tx, r) => tx.team.update({ where: { id: r.team }, data: { mascot: { delete: true } } }),
      'P2025',
    ],
    [
      'many to many: update',
      'Tag',
      (tx, r) =>
        tx.member.update({ where: member(r), data: { tags: { update: { where: { id: r.Tag }, data: value } } } }),
      'P2025',
    ],
    [
      'many to many: updateMany',
      'Tag',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: { tags: { updateMany: { where: { name: `tag ${r.n}` }, data: value } } },
        }),
      'resolves',
    ],
    [
      'many to many: upsert',
      'Tag',
      (tx, r) =>
        tx.member.update({
          where: member(r),
          data: { tags: { upsert: { where: { id: r.Tag }, update: value, create: { name: `t ${r.n}`, value: 1 } } } },
        }),
      'resolves',
    ],
    [
      'many to many: delete',
      'Tag',
      (tx, r) => tx.member.update({ where: member(r), data: { tags: { delete: { id: r.Tag } } } }),
      'P2017',
    ],
    [
      'many to many: deleteMany',
      'Tag',
      (tx, r) => tx.member.update({ where: member(r), data: { tags: { deleteMany: {} } } }),
      'resolves',
    ],
    [
      'many to many with itself: update',
      'Member',
      (tx, r) =>
        tx.member.update({ where: { id: r.boss }, data: { fans: { update: { where: member(r), data: value } } } }),
      'P2025',
    ],
    [
      'many to many with itself: updateMany',
      'Member',
      (tx, r) =>
        tx.member.update({
          where: { id: r.boss },
          data: { fans: { updateMany: { where: { name: `member ${r.n}` }, data: value } } },
        }),
      'resolves',
    ],
    [
      'depth 3: updateMany',
      'Note',
      (tx, r) =>
        tx.team.update({
          where: { id: r.team },
          data: {
            members: { update: { where: member(r), data: { notes: { updateMany: { where: {}, data: value } } } } },
          },
        }),
      'resolves',
    ],
    [
      'depth 3: to one',
      'Desk',
      (tx, r) =>
        tx.team.update({
          where: { id: r.team },
          data: { members: { update: { where: member(r), data: { desk: { update: value } } } } },
        }),
      'P2025',
    ],
    [
      'depth 4: boss of the host, and a fan of that',
      'Member',
      (tx, r) =>
        tx.visit.update({
          where: { id: r.visit },
          data: {
            host: {
              update: {
                boss: { update: { fans: { updateMany: { where: { name: `member ${r.n}` }, data: value } } } },
              },
            },
          },
        }),
      'P2025',
    ],
    [
      'new parent, depth 2: connect',
      'Member',
      (tx, r) =>
        tx.visit.create({
          data: { purpose: 'x', host: { create: { name: `h ${r.n}`, value: 1, reports: { connect: member(r) } } } },
        }),
      'P2018',
    ],
    [
      'words: to one',
      'Word',
      (tx, r) => tx.word.update({ where: { id: r.Word }, data: { connect: { update: { value: 2 } }, value: 77 } }),
      'P2025',
    ],
    [
      'words: list',
      'Word',
      (tx, r) =>
        tx.word.update({
          where: { id: r.word },
          data: { update: { update: { where: { id: r.Word }, data: { value: 77, create: 2 } } } },
        }),
      'P2025',
    ],
    [
      'words: list, connect',
      'Word',
      (tx, r) => tx.word.create({ data: { name: `new ${r.n}`, value: 1, update: { connect: { id: r.Word } } } }),
      'P2018',
    ],
  ] as readonly Line[]
).map((line) => ({ ...toCase(line), refused: 'nested' as const }));

export const CASES: readonly Case[] = [...direct, ...nested];

function toCase([name, target, write, missing, refused]: Line): Case {
  return { name, target, write, missing, ...(refused === undefined ? {} : { refused }) };
}
