import type { Mutant } from './mutant.js';

const file = 'src/transaction/lost-commit.ts';

export const OUTCOME: readonly Mutant[] = [
  {
    name: 'a COMMIT that is too slow, told as a failed connection',
    file,
    change: [['error === undefined && wasRunning', 'false']],
    tests: ['test/transaction/slow-commit'],
    why: 'Somebody would look for a failure of the network, and not raise the timeout.',
  },
  {
    name: 'a COMMIT that never arrived, told as too slow',
    file,
    change: [['error === undefined && wasRunning', 'error === undefined']],
    tests: ['test/transaction/slow-commit'],
    only: 'never arrives',
    why: 'Somebody would raise the timeout, and the network would fail again.',
  },
  {
    name: 'epochs not compared',
    file,
    change: [['admission.epoch !== undefined && admission.epoch === evidence.epoch', 'admission.epoch !== undefined']],
    tests: ['test/transaction/outcome'],
    why: 'After a crash an xid may be another transaction’s.',
  },
  {
    name: 'in progress in another epoch, taken for another transaction',
    file,
    change: [["      return 'open';", "      return isSameEpoch(admission, evidence) ? 'open' : 'aborted';"]],
    tests: ['test/transaction/evidence'],
    why: 'Where somebody has deleted the row of the epoch, it is the same transaction, and may still commit.',
  },
  {
    name: 'in another epoch, the row as it was before the commit',
    file,
    change: [['&& !isSameEpoch(admission, evidence))', '&& false)']],
    tests: ['test/transaction/evidence'],
    only: 'by an older snapshot',
    why: 'A caller would be told to repeat what has committed.',
  },
  {
    name: 'a history that was cut off, taken as whole',
    file,
    change: [["turnsSince < REMEMBERED ? 'aborted' : 'unknown'", "turnsSince < 2n ** 62n ? 'aborted' : 'unknown'"]],
    tests: ['test/transaction/outcome'],
    why: 'Sixteen turns later the attempt is not in it any more.',
  },
  {
    name: 'the history of a younger row',
    file,
    change: [['born === undefined || born >= admission.token', 'born === undefined']],
    tests: ['test/transaction/outcome'],
    why: 'The row may have been deleted since, as idle.',
  },
  {
    name: 'born not read',
    file,
    change: [["born: row['born'] === null ? undefined : BigInt(row['born'] as string)", 'born: 0n']],
    tests: ['test/transaction/evidence'],
    why: 'The rule is worth what it is given.',
  },
  {
    name: 'turns not read',
    file,
    change: [["BigInt((row['turns'] as string | null) ?? 0)", '0n']],
    tests: ['test/transaction/evidence'],
    why: 'The rule is worth what it is given.',
  },
  {
    name: 'outcome asked with the COMMIT still on its way',
    file,
    change: [
      [
        'await rescue(END_BACKEND, [admission.pid, admission.xid, admission.epoch ?? null]);',
        '[] as { working?: boolean }[];',
      ],
    ],
    tests: ['test/promises/g3-outcome'],
    only: 'never arrives',
    why: 'It would arrive after we have looked.',
  },
  {
    name: 'rescue connection kept after an error',
    file: 'src/prisma/rescue.ts',
    change: [['      this.close();\n      throw error;', '      throw error;']],
    tests: ['test/prisma/rescue'],
    why: 'One that hangs would hang for ever, and every outcome be unknown.',
  },
];
