import type { Mutant } from './mutant.js';

const file = 'src/transaction/attempt.ts';

export const ATTEMPT: readonly Mutant[] = [
  {
    name: 'outage: begun again at once',
    file: 'src/transaction/transaction.ts',
    change: [['if (begins || database.isUnavailable(error)) {', 'if (begins) {']],
    tests: ['test/call/postgres-away'],
    only: 'wait for it',
    why: 'A restart of Postgres would fail every caller, also one that had not begun.',
  },
  {
    name: 'outage: everybody asks',
    file: 'src/transaction/outage.ts',
    change: [['this.#probing ??= this.#probe(database);', 'this.#probing = this.#probe(database);']],
    tests: ['test/transaction/outage'],
    why: 'A server that starts would be met by all of them.',
  },
  {
    name: 'attempt: a broken connection has ended for the server, too',
    file: 'src/transaction/attempt.ts',
    change: [['failed !== undefined && this.#call.database.isDisconnect(failed)', 'failed === this']],
    tests: ['test/transaction/half-open'],
    only: 'costs the next caller',
    why: 'The key’s row would be kept for as long as the lease, from the process’ own callers, too.',
  },
  {
    name: 'attempt: a ROLLBACK without an answer is the work’s timeout',
    file: 'src/transaction/attempt.ts',
    change: [['this.#fail(this.#refused ? this.#refused.error : abort.reason);', 'this.#fail(abort.reason);']],
    tests: ['test/transaction/half-open'],
    only: 'leaves the error',
    why: 'The function’s own error would be replaced.',
  },
  {
    name: 'attempt: what has no connection waits for an answer',
    file: 'src/transaction/attempt.ts',
    change: [["if (this.#phase === 'working') {\n      this.#alarm", 'if (abort.aborted) {\n      this.#alarm']],
    tests: ['test/transaction/aborted-early'],
    only: 'has no connection for it',
    why: 'An abort would be heard two seconds late, and the lease kept for as long.',
  },
  {
    name: 'raw SQL: only a line feed ends a comment',
    file: 'src/transaction/raw-sql.ts',
    change: [['/[\\r\\n]/', '/\\n/']],
    tests: ['test/transaction/raw-sql'],
    why: 'A COMMIT behind a carriage return would be let through, and end the transaction.',
  },
  {
    name: 'gate open at COMMIT',
    file,
    change: [['      this.#gate.shut(() => this.#closed());\n      if (this.#gate.busy', '      if (this.#gate.busy']],
    tests: ['test/transaction/traps'],
    why: 'An operation that begins late would land behind the COMMIT.',
  },
  {
    name: 'a statement in flight at the return is committed',
    file,
    change: [['if (this.#gate.isAtWork) throw', 'if (this.#gate.isAtWork && tx === undefined) throw']],
    tests: ['test/transaction/traps'],
    only: 'an extension did not wait for',
    why: 'Half of what nobody awaited would be committed.',
  },
  {
    name: 'an operation in flight at the return is committed',
    file: 'src/transaction/unawaited.ts',
    change: [['if (inFlight !== undefined) throw', 'if (inFlight === null) throw']],
    tests: ['test/call/forgotten-await'],
    only: 'a helper that is not awaited',
    why: 'Half of what nobody awaited would be committed.',
  },
  {
    name: 'the statement of a renewal counts as one of the work',
    file: 'src/transaction/gate.ts',
    change: [
      ['    this.#beats++;\n', ''],
      ['    this.#beats--;\n', ''],
    ],
    tests: ['test/transaction/beat'],
    only: 'does not count as',
    why: 'Healthy work would be rolled back.',
  },
  // Not here: the drain. ROLLBACK stands on the same connection behind what is in flight, and the gate refuses what follows:
  // without it a abort only takes longer.
  {
    name: 'nothing forbids a COMMIT',
    file,
    change: [
      ['    }\n    this.#mayCommit();\n  }', '    }\n  }'],
      ['      this.#mayCommit();\n    } catch', '    } catch'],
    ],
    tests: ['test/transaction/traps', 'test/promises/g2-rows'],
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
    change: [['if (code !== undefined && !INCONCLUSIVE_CLASSES.has(code.slice(0, 2)))', 'if (code !== null)']],
    tests: ['test/promises/g3-outcome'],
    why: 'The COMMIT may have held.',
  },
  {
    name: 'a server that goes down refuses',
    file,
    change: [["'53', '57', '58'", "'53', '58'"]],
    tests: ['test/transaction/commit-answer'],
    why: 'It may have committed before it went down.',
  },
  {
    name: 'unknown means rolled back',
    file,
    change: [
      [
        "if (outcome === 'unknown') {\n" +
          '      return { error: new CommitUnknownError(leases.key, admission.xid, error), isUnknown: true };\n    }',
        '',
      ],
    ],
    tests: ['test/promises/g3-outcome'],
    why: 'Who is told so does the work again.',
  },
  {
    name: 'beat through a shut gate',
    file,
    change: [[' || this.#gate.isShut', '']],
    tests: ['test/transaction/beat'],
    why: 'It throws in the midst of the renewal, which then extends no lease.',
  },
  {
    name: 'no beat',
    file,
    change: [['void connection\n      .query(STILL_HERE, [])', 'void Promise.resolve()']],
    tests: ['test/promises/g5-crash'],
    only: 'is not ended, however long',
    why: 'A holder that is well and awaits something else would be ended as idle.',
  },
  {
    name: 'opening kept when aborted',
    file,
    change: [['      entry.discard();\n', '']],
    tests: ['test/transaction/aborted'],
    why: 'Its connection would never come back to the pool.',
  },
  // Not here: the gate that a abort shuts. The work's end shuts it in the same moment; only the error's words differ.
  {
    name: 'statement after the abort',
    file: 'src/transaction/gate.ts',
    change: [['    if (this.#shut) throw this.#shut();\n', '']],
    tests: ['test/transaction/traps'],
    only: 'begins after the function has ended',
    why: 'It would land outside the transaction.',
  },
  {
    name: 'work begun again although admitted',
    file: 'src/transaction/transaction.ts',
    change: [['      if (attempt.admitted) throw error;\n', '']],
    tests: ['test/transaction/runs-once'],
    why: 'What the work did elsewhere would be done twice.',
  },
  {
    name: 'a work of any error runs again',
    file: 'src/transaction/transaction.ts',
    change: [
      [
        'if (run >= limits.retries || !isRetryable(error, call)) throw error;',
        'if (run >= limits.retries) throw error;',
      ],
    ],
    tests: ['test/fencing/writes/retries'],
    only: 'nothing else',
    why: 'Only what may be gone by then is a reason.',
  },
  // Not here: `endBlockers` without its look at an age that is not finite. Postgres makes no interval of it, and ends nobody.
  {
    name: 'blockers of any age',
    file: 'src/database/sql.ts',
    change: [
      [
        'a.xact_start OPERATOR(pg_catalog.<)\n    (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)',
        'a.xact_start OPERATOR(pg_catalog.<)\n    (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+)',
      ],
    ],
    tests: ['test/database/sql', 'test/transaction/admission'],
    why: 'One that began after our lease is work that is well.',
  },
  {
    name: 'blockers of whoever has the backend by now',
    file: 'src/database/sql.ts',
    change: [
      [
        'AND extract(epoch FROM o.xact_start) OPERATOR(pg_catalog.=) $3::pg_catalog.text::numeric',
        'AND $3::pg_catalog.text IS NOT NULL',
      ],
    ],
    tests: ['test/database/sql'],
    why: 'Behind a pooler it may be another process, which waits for work that is well.',
  },
  {
    name: 'blockers by a clock that was not set back',
    file: 'src/database/sql.ts',
    change: [['a.xact_start OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()', 'false']],
    tests: ['test/promises/g5-clocks.slow'],
    why: 'A frozen holder, whose time limits come an hour late too, would keep its key for an hour.',
  },
  {
    name: 'transaction remembered for ever',
    file: 'src/connection/pg-connection.ts',
    change: [['    this.conductor = undefined;\n', '']],
    tests: ['test/transaction/nothing-kept'],
    why: 'Prisma remembers its last hundred transactions: each would keep all that its work had.',
  },
  {
    name: 'backend in any transaction',
    file: 'src/database/sql.ts',
    change: [
      [
        'AND a.backend_xid OPERATOR(pg_catalog.=) $2::pg_catalog.text::pg_catalog.xid8::pg_catalog.xid',
        'AND $2::pg_catalog.text IS NOT NULL',
      ],
    ],
    tests: ['test/database/sql'],
    why: 'The pool has given the connection to somebody else by then.',
  },
  {
    name: 'backend of any epoch',
    file: 'src/database/sql.ts',
    change: [['$3::pg_catalog.uuid OPERATOR(pg_catalog.=)\n', '$3::pg_catalog.uuid OPERATOR(pg_catalog.<>)\n']],
    tests: ['test/database/sql'],
    why: 'After a crash the numbers are given out again.',
  },
  {
    name: 'the end of a backend, however long it takes',
    file,
    change: [['void within(ended, ANSWER_TIME).then(', 'void ended.then(']],
    tests: ['test/promises/g3-outcome'],
    why: 'With Postgres frozen, callers would hear of it one behind the other.',
  },
  {
    name: 'any answer to COMMIT is a commit',
    file,
    change: [["if (tag === 'COMMIT')", 'if (tag)']],
    tests: ['test/transaction/traps'],
    only: 'swallowed SQL error',
    why: 'COMMIT of an aborted transaction is a ROLLBACK that reports success.',
  },
  {
    name: 'COMMIT of a transaction that is none any more',
    file,
    change: [['      if (connection.isOver && this.#ended === undefined) this.#ended = await this.#howEnded();\n', '']],
    tests: ['test/transaction/ended-underneath'],
    why: 'The connection may answer well, and be in no transaction: its COMMIT succeeds, too.',
  },
  {
    name: 'transaction control let through',
    file,
    change: [['    refuseControl(text, leases.key);\n', '']],
    tests: ['test/transaction/traps'],
    only: 'would end the transaction',
    why: 'What came before it would be committed, whatever comes of the rest.',
  },
];
