import type { Mutant } from './mutant.js';

const file = 'src/fence/attempt.ts';

export const ATTEMPT: readonly Mutant[] = [
  {
    name: 'admission outside the transaction',
    file,
    change: [['strike.unlessStruck(admit(query, {', 'strike.unlessStruck(admit(database.rescue, {']],
    tests: ['test/promises/g1-serial'],
    why: 'The row would be free again before the work begins.',
  },
  {
    name: 'statement before the admission',
    file,
    change: [
      [
        '    const admission = await this.#admit(query);',
        '    await query(STILL_HERE, []);\n    const admission = await this.#admit(query);',
      ],
    ],
    tests: ['test/fence/first-statement'],
    why: 'It takes the snapshot: under REPEATABLE READ one from before the wait.',
  },
  {
    name: 'admission that is not awaited',
    file,
    change: [
      [
        '    const admission = await this.#admit(query);',
        "    const admitting = this.#admit(query);\n    const admission = { token: 2n ** 62n, xid: '', epoch: '' } as Admission;",
      ],
      ['      await this.#drain(admission);', '      await this.#drain(await admitting);'],
    ],
    tests: ['test/promises/g1-serial'],
    why: 'The work would begin before Postgres has said yes.',
  },
  {
    name: 'gate open at COMMIT',
    file,
    change: [['      this.#gate.shut(() => closed(grant.key));\n      await this.#drain', '      await this.#drain']],
    tests: ['test/fence/traps'],
    why: 'An operation that begins late would land behind the COMMIT.',
  },
  {
    name: 'no drain',
    file,
    change: [['      await this.#drain(admission);', '']],
    tests: ['test/fence/traps'],
    why: 'The rest of a failed Promise.all would land outside the transaction.',
  },
  {
    name: 'no probe',
    file,
    change: [['      await this.#probe(admission, query, this.#gate.failure.error);', '']],
    tests: ['test/fence/traps'],
    why: 'COMMIT of an aborted transaction is a ROLLBACK that reports success.',
  },
  {
    name: 'probe of any transaction',
    file,
    change: [["if (row?.['xid'] !== admission.xid) {", 'if (row === undefined) {']],
    tests: ['test/fence/ended-underneath'],
    why: 'The connection may answer well, and be in no transaction any more.',
  },
  {
    name: 'nothing forbids a COMMIT after the probe',
    file,
    change: [['failure.error);\n      this.#mayCommit();', 'failure.error);']],
    tests: ['test/fence/struck'],
    why: 'The lease may be lost while the probe is under way.',
  },
  {
    name: 'nothing forbids a COMMIT',
    file,
    change: [['    }\n    this.#mayCommit();\n    if', '    }\n    if']],
    tests: ['test/fence/traps', 'test/promises/g2-rows'],
    why: 'A lease that is lost, or a row that was fresher, would be committed past.',
  },
  {
    name: 'stale forgotten',
    file,
    change: [['if (error instanceof StaleTokenError) this.#stale ??= error;', '']],
    tests: ['test/promises/g2-rows'],
    why: 'Who swallows the error would commit what rests on the row.',
  },
  {
    name: 'a lost answer means rolled back',
    file,
    change: [['if (end !== OVERDUE && this.#isRefusal(end.error))', 'if (end !== OVERDUE)']],
    tests: ['test/promises/g3-outcome'],
    why: 'The COMMIT may have held.',
  },
  {
    name: 'a server that goes down refuses',
    file,
    change: [["'53', '57', '58'", "'53', '58'"]],
    tests: ['test/fence/commit-answer'],
    why: 'It may have committed before it went down.',
  },
  {
    name: 'unknown means rolled back',
    file,
    change: [["if (outcome === 'unknown') throw new CommitUnknownError(grant.key, admission.xid, error);", '']],
    tests: ['test/promises/g3-outcome'],
    why: 'Who is told so does the work again.',
  },
  {
    name: 'beat through a shut gate',
    file,
    change: [[' || this.#gate.isShut', '']],
    tests: ['test/fence/beat'],
    why: 'It throws in the midst of the renewal, which then extends no lease.',
  },
  {
    name: 'no beat',
    file,
    change: [['    void query(STILL_HERE, [])', '    void Promise.resolve()']],
    tests: ['test/promises/g5-crash'],
    only: 'is not ended, however long',
    why: 'A holder that is well and awaits something else would be ended as idle.',
  },
  {
    name: 'opening kept when struck',
    file,
    change: [['      this.#opening.discard();\n', '']],
    tests: ['test/fence/struck'],
    why: 'Its connection would never come back to the pool.',
  },
  // Not here: the gate that a strike shuts. The work's end shuts it in the same moment; only the error's words differ.
  {
    name: 'statement after the strike',
    file: 'src/fence/gate.ts',
    change: [['    if (this.#shut) throw this.#shut();\n', '']],
    tests: ['test/fence/traps'],
    only: 'begins after the function has ended',
    why: 'It would land outside the transaction.',
  },
  {
    name: 'work begun again although admitted',
    file: 'src/fence/transaction.ts',
    change: [['      if (attempt.admitted) throw error;\n', '']],
    tests: ['test/fence/runs-once'],
    why: 'What the work did elsewhere would be done twice.',
  },
  {
    name: 'a work of any error runs again',
    file: 'src/fence/transaction.ts',
    change: [
      ['if (run >= limits.retries || !mayPass(error, call)) throw error;', 'if (run >= limits.retries) throw error;'],
    ],
    tests: ['test/fence/writes/retries'],
    only: 'nothing else',
    why: 'Only what may be gone by then is a reason.',
  },
  // Not here: `endBlockers` without its look at an age that is not finite. Postgres makes no interval of it, and ends nobody.
  {
    name: 'blockers of any age',
    file: 'src/fence/sql.ts',
    change: [
      [
        'WHERE a.xact_start NOT BETWEEN clock_timestamp() - make_interval(secs => $2::float8 / 1000) AND clock_timestamp()\n  AND',
        'WHERE $2::float8 IS NOT NULL AND',
      ],
    ],
    tests: ['test/fence/sql', 'test/fence/admission'],
    why: 'One that began after our lease is work that is well.',
  },
  {
    name: 'blockers of whoever has the backend by now',
    file: 'src/fence/sql.ts',
    change: [['AND extract(epoch FROM o.xact_start) = $3::text::numeric', 'AND $3::text IS NOT NULL']],
    tests: ['test/fence/sql'],
    why: 'Behind a pooler it may be another process, which waits for work that is well.',
  },
  {
    name: 'blockers by a clock that was not set back',
    file: 'src/fence/sql.ts',
    change: [
      ['a.xact_start NOT BETWEEN clock_timestamp() -', 'a.xact_start < clock_timestamp() -'],
      [' AND clock_timestamp()\n', '\n'],
    ],
    tests: ['test/promises/g5-clocks'],
    why: 'A frozen holder, whose time limits come an hour late too, would keep its key for an hour.',
  },
  {
    name: 'transaction remembered for ever',
    file: 'src/prisma/transactions.ts',
    change: [['        open.delete(id);\n', '']],
    tests: ['test/fence/nothing-kept'],
    why: 'A process that runs for long would keep every work that it has done.',
  },
  {
    name: 'backend in any transaction',
    file: 'src/fence/sql.ts',
    change: [['AND a.backend_xid = $2::text::xid8::xid', 'AND $2::text IS NOT NULL']],
    tests: ['test/fence/sql'],
    why: 'The pool has given the connection to somebody else by then.',
  },
  {
    name: 'backend of any epoch',
    file: 'src/fence/sql.ts',
    change: [['$3::uuid IS NULL OR $3::uuid = (SELECT', '$3::uuid IS NULL OR $3::uuid IS DISTINCT FROM (SELECT']],
    tests: ['test/fence/sql'],
    why: 'After a crash the numbers are given out again.',
  },
  {
    name: 'the end of a backend, however long it takes',
    file,
    change: [
      [
        'await within(endBackend(this.#call, this.#admission), ANSWER_TIME)',
        'await endBackend(this.#call, this.#admission)',
      ],
    ],
    tests: ['test/promises/g3-outcome'],
    why: 'With Postgres frozen, callers would hear of it one behind the other.',
  },
];
