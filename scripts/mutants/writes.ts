import type { Mutant } from './mutant.js';

const fence = 'src/fencing/fence.ts';
const writes = 'src/fencing/writes.ts';

export const WRITES: readonly Mutant[] = [
  {
    name: '< instead of <=',
    file: fence,
    change: [['{ lte: fence.token }', '{ lt: fence.token }']],
    tests: ['test/promises/g2-rows'],
    why: 'A holder may write its row twice.',
  },
  {
    name: 'any fence',
    file: fence,
    change: [['{ [fence.field]: { lte: fence.token } }', '{ [fence.field]: { gte: 0n } }']],
    tests: ['test/promises/g2-rows'],
    why: 'A row would go back.',
  },
  {
    name: 'fresher rows not looked for',
    file: fence,
    change: [['  if (row === null) return;\n', '  if (row !== undefined) return;\n']],
    tests: ['test/promises/g2-rows'],
    why: 'A write that met a fresher row would report that it wrote what it was to write.',
  },
  {
    name: 'claim of any row',
    file: fence,
    change: [
      [
        'const args = { where: { AND: [where, notFresher(fence)] }, data: claimed(fence) };',
        'const args = { where, data: claimed(fence) };',
      ],
    ],
    tests: ['test/promises/g2-rows'],
    why: 'It would bring a fresher row back.',
  },
  {
    name: 'claimed row by its old fence',
    file: writes,
    change: [['send(whereClaimed(where, fence))', 'send(where)']],
    tests: ['test/fencing/writes/claimed'],
    why: 'The claim has changed the fence that the caller asked for: the row would not be found.',
  },
  {
    name: 'claimed row of an upsert by its old fence',
    file: writes,
    change: [['where: whereClaimed(where, fence), data', 'where, data']],
    tests: ['test/fencing/writes/claimed'],
    why: 'The claim has changed the fence that the caller asked for: the row would not be found.',
  },
  {
    name: 'claimed row without its condition',
    file: writes,
    change: [['  return withCondition(rest, claimed(fence));\n', '  return rest;\n']],
    tests: ['test/fencing/writes/behind-the-claim'],
    why: 'Where the claim has met no row, one may come before the write.',
  },
  {
    name: 'updateMany without condition',
    file: writes,
    change: [['where: { AND: [where ?? {}, notFresher(fence)] }', 'where: where ?? {}']],
    tests: ['test/promises/g2-rows'],
    why: 'A row would go back.',
  },
  {
    name: 'limit accepted',
    file: writes,
    change: [["if (args['limit'] !== undefined) {", "if (args['limit'] === null) {"]],
    tests: ['test/promises/g2-rows'],
    only: 'limit',
    why: 'Prisma puts the condition into a sub-select only.',
  },
  {
    name: 'token given by the caller',
    file: fence,
    change: [['  if (row?.[fence.field] !== undefined) {', '  if (row?.[fence.field] === null) {']],
    tests: ['test/fencing/writes/misuse'],
    why: 'A fence that somebody chose orders nothing.',
  },
  {
    name: 'nested writes let through',
    file: fence,
    change: [['if (unguarded !== undefined) {', 'if (unguarded === null) {']],
    tests: ['test/fencing/writes/cells'],
    only: 'nothing of it is written',
    why: 'Prisma writes the rows that it finds, by statements without the condition.',
  },
  {
    name: 'nested writes behind guarded rows let through',
    file: fence,
    change: [['    for (const nested of nestedData(value as Args)) refuseNested(other, nested, fence);\n', '']],
    tests: ['test/fencing/writes/nested-writes'],
    why: 'The guard of the rows between says nothing of those behind them.',
  },
];
