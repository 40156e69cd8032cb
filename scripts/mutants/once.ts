import type { Mutant } from './mutant.js';

const script = 'prisma/migrations/20261101000000_fenced_lock/migration.sql';

export const ONCE: readonly Mutant[] = [
  {
    name: 'once: a run that was committed since the look is not heeded',
    file: 'src/call/once-per.ts',
    change: [['    if (state.due !== undefined) throw new NotDue(state);\n', '']],
    tests: ['test/call/once-per'],
    only: 'on its way to its transaction',
    why: 'The interval would have two runs.',
  },
  {
    name: 'once: whoever finds it done takes the lock first',
    file: 'src/call/once-per.ts',
    change: [['  if (seen.due !== undefined) return notNow(seen.due, presentOf(seen), false);\n', '']],
    tests: ['test/call/once-per'],
    only: 'neither Redis nor',
    why: 'On every machine but one that is what happens.',
  },
  {
    name: 'once: joins a lock of the same key',
    file: 'src/call/once-per.ts',
    change: [['  refuseNestedCall(keys, options.nested);\n', '']],
    tests: ['test/call/once-per'],
    only: 'is refused inside a lock',
    why: 'Its run would be told before it is committed.',
  },
  {
    name: 'once: a caller that is busy comes back in the next interval only',
    file: 'src/call/once-per.ts',
    change: [['Math.min(seen.after, present + expiresIn + 1)', 'seen.after']],
    tests: ['test/call/once-per'],
    only: 'to be tried again soon',
    why: 'If the holder has crashed, nobody repeats its run.',
  },
  {
    name: 'once: a timer is told a delay that is too long for it',
    file: 'src/call/once-per.ts',
    change: [['Math.min(Math.max(0, next - present), LONGEST_TIME)', 'Math.max(0, next - present)']],
    tests: ['test/call/once-per'],
    only: 'the longest timer',
    why: 'Node fires it at once, so the caller would ask Postgres in a loop.',
  },
  {
    name: 'once: the mark of the last run is not kept',
    file: script,
    change: [[' DO UPDATE SET ran_at = excluded.ran_at, held_until = excluded.held_until;', ' DO NOTHING;']],
    tests: ['test/database/runs'],
    why: 'From the second interval on everybody runs.',
  },
  {
    name: 'once: a clock that was set back counts as a new interval',
    file: script,
    change: [['    IF due_ms <= now_ms THEN\n', '    IF due_ms <= now_ms OR due_ms > after_ms THEN\n']],
    tests: ['test/call/once-per'],
    only: 'set back',
    why: 'An interval would have two runs.',
  },
  {
    name: 'once: a run is marked without an admission',
    file: script,
    change: [
      [
        'WHERE a.key = of_key AND a.xid = pg_current_xact_id_if_assigned()\n            AND a.admitted_at >= transaction_timestamp()\n    ) THEN',
        'WHERE false\n    ) AND false THEN',
      ],
    ],
    tests: ['test/database/runs'],
    why: 'Nothing would keep two of them apart.',
  },
  {
    name: 'once: a run is marked behind an admission of a dump',
    file: script,
    change: [['\n            AND a.admitted_at >= transaction_timestamp()\n', '\n']],
    tests: ['test/database/runs'],
    only: 'of a dump',
    why: 'Nothing would keep two of them apart.',
  },
];
