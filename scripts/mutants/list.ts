import type { Mutant } from './try.js';

const SQL = 'prisma/migrations/20261101000000_fenced_lock/migration.sql';

/** One or two for each promise and for each step of the protocol. `npm run mutants` shows that the tests find each. */
export const MUTANTS: readonly Mutant[] = [
  // G1: committed transactions of one key are serial.
  {
    name: 'one key: admission without the row',
    file: SQL,
    change: [
      [
        '        UPDATE fenced_lock.admission AS a SET\n            token = ',
        "RETURN concat('1 ', pg_current_xact_id(), ' ', pg_backend_pid(), ' - ', nextval('fenced_lock.token'), ' -');\n        UPDATE fenced_lock.admission AS a SET\n            token = ",
      ],
    ],
    tests: ['test/promises/g1-serial'],
    why: 'A token alone does not keep a former holder from writing what the next one has read.',
  },
  {
    name: 'one key: token before the row',
    file: SQL,
    change: [
      [
        "        UPDATE fenced_lock.admission AS a SET\n            token = nextval('fenced_lock.token')",
        "is_set := nextval('fenced_lock.token')::text;\n        UPDATE fenced_lock.admission AS a SET\n            token = is_set::bigint",
      ],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: 'Who waits for the row would come into it with a token from before the wait.',
  },
  {
    name: 'admission without the row',
    file: SQL,
    change: [
      [
        'and updated in the next round.\n',
        "and updated in the next round.\n                our_token := nextval('fenced_lock.token'); our_turn := 1; EXIT;\n",
      ],
    ],
    tests: ['test/promises/g1-serial'],
    why: 'A token alone does not keep a former holder from writing what the next one has read.',
  },
  {
    name: 'handle locks its row without writing it',
    file: SQL,
    change: [
      [
        "INSERT INTO fenced_lock.admission AS a (key, token, holder, born, turns, attempts, admitted_at)\n            VALUES (our_key, 0, our_holder, 0, 0, '{}', clock_timestamp())\n            ON CONFLICT (key) DO UPDATE SET\n                holder = coalesce(successors[place], our_holder),\n                turns = a.turns + 1,\n                attempts = array_prepend(attempt, a.attempts[1:15]),\n                xid = pg_current_xact_id(),\n                admitted_at = greatest(clock_timestamp(), transaction_timestamp())\n            -- By token and holder",
        'SELECT a.turns INTO our_turn FROM fenced_lock.admission AS a\n            -- By token and holder',
      ],
      [
        'WHERE a.token = our_token AND a.holder IN (our_holder, successors[place])\n            RETURNING a.turns INTO our_turn;',
        'WHERE a.key = our_key AND a.token = our_token AND a.holder IN (our_holder, successors[place])\n            FOR UPDATE;',
      ],
    ],
    tests: ['test/transaction/admission'],
    why: 'Under REPEATABLE READ a snapshot from before another turn meets no conflict.',
  },
  {
    name: 'handle of another holder',
    file: SQL,
    change: [['AND a.holder IN (our_holder, successors[place])', '']],
    tests: ['test/call/handles-resumed'],
    why: 'After a failover a token can be issued twice.',
  },
  {
    name: 'handle registered for the moment',
    file: SQL,
    change: [['IF durable AND', 'IF false AND']],
    tests: ['test/call/handles-lost'],
    only: 'not issued a second time',
    why: 'A crash would give a token out again that other systems have seen.',
  },
  {
    name: 'BEGIN is lost',
    file: 'src/connection/pg-connection.ts',
    change: [['= `BEGIN$', '= `SELECT 1 -- $']],
    tests: ['test/promises/g1-serial'],
    why: 'The work would run in autocommit, and its rollback roll back nothing.',
  },
  {
    name: 'statement before the admission',
    file: 'src/connection/pg-connection.ts',
    change: [[', values: [] }, ...statements]', ", values: [] }, { text: 'SELECT 1', values: [] }, ...statements]"]],
    tests: ['test/transaction/commit-answer'],
    why: 'It takes the snapshot: under REPEATABLE READ one from before the wait.',
  },
  // G2: the fence, in the client.
  {
    name: '< instead of <=',
    file: 'src/fencing/fence.ts',
    change: [['{ lte: fence.token }', '{ lt: fence.token }']],
    tests: ['test/promises/g2-rows'],
    why: 'A holder may write its row twice.',
  },
  {
    name: 'any fence',
    file: 'src/fencing/fence.ts',
    change: [['{ [fence.field]: { lte: fence.token } }', '{ [fence.field]: { gte: 0n } }']],
    tests: ['test/promises/g2-rows'],
    why: 'A row would go back.',
  },
  {
    name: 'fresher rows not looked for',
    file: 'src/fencing/fence.ts',
    change: [['  if (row === undefined) return;\n', '  if (row !== undefined) return;\n']],
    tests: ['test/promises/g2-rows'],
    why: 'A write that met a fresher row would report that it wrote what it was to write.',
  },
  {
    name: 'claim of any row',
    file: 'src/fencing/fence.ts',
    change: [
      [
        'const args = { where: withCondition(where, notFresher(fence)), data: claimed(fence), select };',
        'const args = { where, data: claimed(fence), select };',
      ],
    ],
    tests: ['test/promises/g2-rows'],
    why: 'It would bring a fresher row back.',
  },
  {
    name: 'updateMany without condition',
    file: 'src/fencing/writes.ts',
    change: [['where: withCondition(asked, notFresher(fence)) }', 'where: asked }']],
    tests: ['test/promises/g2-rows'],
    why: 'A row would go back.',
  },
  {
    name: 'nested writes let through',
    file: 'src/fencing/fence.ts',
    change: [['if (unguarded !== undefined) {', 'if (unguarded === null) {']],
    tests: ['test/fencing/writes/as-prisma'],
    only: 'no guard',
    why: 'Prisma writes the rows that it finds, by statements without the condition.',
  },
  {
    name: 'stale forgotten',
    file: 'src/transaction/gate.ts',
    change: [
      [
        'if (named instanceof StaleTokenError || named instanceof InvalidOptionError)',
        'if (named instanceof InvalidOptionError)',
      ],
    ],
    tests: ['test/promises/g2-rows'],
    why: 'Who swallows the error would commit what rests on the row.',
  },
  // G2: the guard, in the database.
  {
    name: 'guard of none',
    file: SQL,
    change: [['IF row_fence OPERATOR(pg_catalog.>) our_token THEN', 'IF false THEN']],
    tests: ['test/fencing/guard/policies'],
    why: 'Raw SQL would bring a row back.',
  },
  {
    name: 'guard of none where the fence has its usual name',
    file: SQL,
    change: [['IF OLD.fence OPERATOR(pg_catalog.<=) our_token\n', 'IF true\n']],
    tests: ['test/fencing/guard/policies'],
    why: 'Raw SQL would bring a row back.',
  },
  {
    name: 'proof of another transaction',
    file: SQL,
    change: [['\n            AND a.xid OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned()', '']],
    tests: ['test/fencing/guard/policies'],
    only: 'another transaction got meanwhile',
    why: 'The setting alone is anybody’s.',
  },
  {
    name: 'guard: a type is found by the search_path of who writes',
    file: SQL,
    change: [['whole_row pg_catalog.jsonb;', 'whole_row jsonb;']],
    tests: ['test/database/guard'],
    only: 'runs nothing as anybody else',
    why: 'Code of an attacker would run as the owner of the table.',
  },
  // G3: what a COMMIT meant.
  {
    name: 'nothing forbids a COMMIT',
    file: 'src/transaction/attempt.ts',
    change: [
      ['    }\n    this.#checkCommit();\n    const', '    }\n    const'],
      ['      this.#checkCommit();\n    } catch', '    } catch'],
    ],
    tests: ['test/transaction/traps', 'test/promises/g2-rows'],
    why: 'A lease that is lost, or a row that was fresher, would be committed past.',
  },
  {
    name: 'any answer to COMMIT is a commit',
    file: 'src/transaction/commit.ts',
    change: [["tag === 'COMMIT' ? undefined", 'tag ? undefined']],
    tests: ['test/transaction/traps'],
    only: 'swallowed SQL error',
    why: 'COMMIT of an aborted transaction is a ROLLBACK that reports success.',
  },
  {
    name: 'COMMIT of a transaction that is none any more',
    file: 'src/transaction/attempt.ts',
    change: [['      await gate.findEnd(connection);\n      this.#checkCommit();', '      this.#checkCommit();']],
    tests: ['test/transaction/ended-underneath'],
    why: 'The connection may answer well, and be in no transaction: its COMMIT succeeds, too.',
  },
  {
    name: 'a lost answer means rolled back',
    file: 'src/transaction/commit.ts',
    change: [
      ['return code !== undefined && !INCONCLUSIVE_CLASSES.has(code.slice(0, 2)) &&', 'return code !== null &&'],
    ],
    tests: ['test/promises/g3-outcome'],
    why: 'The COMMIT may have held.',
  },
  {
    name: 'unknown means rolled back',
    file: 'src/transaction/commit.ts',
    change: [
      [
        "if (outcome === 'unknown') {\n    return { error: new CommitUnknownError(leases.key, admission.xid, error), isUnknown: true };\n  }",
        '',
      ],
    ],
    tests: ['test/promises/g3-outcome'],
    why: 'Who is told so does the work again.',
  },
  {
    name: 'outcome asked with the COMMIT still on its way',
    file: 'src/transaction/commit.ts',
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
    name: 'epochs not compared',
    file: 'src/transaction/commit.ts',
    change: [['admission.epoch !== undefined && admission.epoch === evidence.epoch', 'admission.epoch !== undefined']],
    tests: ['test/transaction/evidence'],
    why: 'After a crash an xid may be another transaction’s.',
  },
  {
    name: 'a history that was cut off, taken as whole',
    file: 'src/transaction/commit.ts',
    change: [["turnsSince < REMEMBERED ? 'aborted' : 'unknown'", "turnsSince < 2n ** 62n ? 'aborted' : 'unknown'"]],
    tests: ['test/transaction/evidence'],
    why: 'Sixteen turns later the attempt is not in it any more.',
  },
  {
    name: 'the history of a younger row',
    file: 'src/transaction/commit.ts',
    change: [['born === undefined || born >= admission.token', 'born === undefined']],
    tests: ['test/transaction/evidence'],
    why: 'The row may have been deleted since, as idle.',
  },
  {
    name: 'one key: attempt not remembered',
    file: SQL,
    change: [['a.turns + 1,\n            attempts = array_prepend(attempt, a.attempts[1:15]),', 'a.turns + 1,']],
    tests: ['test/promises/g3-outcome'],
    only: 'history of its key',
    why: 'After a crash nothing else proves that a COMMIT held.',
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
  // G3: what is sent, and when.
  {
    name: 'transaction control let through',
    file: 'src/transaction/gate.ts',
    change: [['      if (refused !== undefined) throw refusal(refused, leases.key);\n', '']],
    tests: ['test/transaction/traps'],
    only: 'would end the transaction',
    why: 'What came before it would be committed, whatever comes of the rest.',
  },
  {
    name: 'statement after the abort',
    file: 'src/transaction/gate.ts',
    change: [['    if (this.#shut) throw this.#shut();\n', '']],
    tests: ['test/transaction/traps'],
    only: 'begins after the function has ended',
    why: 'It would land outside the transaction.',
  },
  {
    name: 'an operation in flight at the return is committed',
    file: 'src/call/work.ts',
    change: [['if (inFlight !== undefined) throw', 'if (inFlight === null) throw']],
    tests: ['test/call/forgotten-await'],
    only: 'a helper that writes',
    why: 'Half of what nobody awaited would be committed.',
  },
  {
    name: 'work begun again although admitted',
    file: 'src/transaction/transaction.ts',
    change: [['    if (admitted) {', '    if (false) {']],
    tests: ['test/transaction/refused-commit'],
    why: 'What the work did elsewhere would be done twice.',
  },
  // G3: a key is given back when the outcome is known, by its holder alone, and to the one that is next.
  {
    name: 'release before the COMMIT',
    file: 'src/call/with-lock.ts',
    change: [
      [
        '          turn.pass((next, lease) => (next instanceof LockRequest ? next.chain(database, lease) : undefined)),',
        '          turn.end() as undefined,',
      ],
    ],
    tests: ['test/promises/g3-outcome'],
    only: 'before the COMMIT',
    why: 'The lock is released only when the outcome is known.',
  },
  {
    name: 'given back while the successor works',
    file: 'src/waiting/key-queue.ts',
    change: [["    if (this.#turns === 0) this.#passOn(lease, 'lease');", "    this.#passOn(lease, 'lease');"]],
    tests: ['test/call/chain', 'test/waiting/hand-over'],
    why: 'Another process would have the key beside it.',
  },
  {
    name: 'release of somebody else’s',
    file: 'lua/release.lua',
    change: [['if holder and holder ~= ARGV[1] then return 0 end\n', '']],
    tests: ['test/redis/store'],
    why: 'Two would have it.',
  },
  {
    name: 'release that passes nothing on',
    file: 'lua/release.lua',
    change: [['if not pass_on(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5]) then', 'if ARGV[4] and ARGV[7] then']],
    tests: ['test/redis/store'],
    why: 'The key would go to whoever looks first.',
  },
  {
    name: 'transfer of somebody else’s',
    file: 'lua/transfer.lua',
    change: [['if holder ~= ARGV[1] and holder ~= ARGV[2] then return 0 end\n', '']],
    tests: ['test/redis/store'],
    why: 'A lost handle would take the key from who has it.',
  },
  {
    name: 'force: of another holder than the one that was seen',
    file: 'src/call/operators.ts',
    change: [['if (seen !== undefined && seen.holder !== holder) return undefined;', '']],
    tests: ['test/call/operators'],
    only: 'leaves a later holder alone',
    why: 'An operator has decided about one holder. The next one is well.',
  },
  // One holder at a time, in the order in which they came, without a connection of Postgres (G4).
  {
    name: 'acquire of what somebody has',
    file: 'lua/acquire.lua',
    change: [['if holder == ARGV[1] then\n  extend(', 'if true then\n  extend(']],
    tests: ['test/redis/store'],
    why: 'Two would have it.',
  },
  {
    name: 'acquire past the queue',
    file: 'lua/acquire.lua',
    change: [['is_free = (first == nil or first == own) and not behind', 'is_free = not behind']],
    tests: ['test/redis/store'],
    why: 'Who comes last would be first.',
  },
  {
    name: 'extension of somebody else’s',
    file: 'lua/extend.lua',
    change: [['if holder == ARGV[1] then', 'if holder then']],
    tests: ['test/redis/store'],
    why: 'Who lost the lease would believe that it has it.',
  },
  {
    name: 'offer to the dead',
    file: 'lua/shared/wake.lua',
    change: [['[2] > 0', '[2] >= 0']],
    tests: ['test/redis/store'],
    why: 'Each of them would cost an offer’s time.',
  },
  {
    name: 'quorum: half of the nodes are enough',
    file: 'src/stores/majority.ts',
    change: [['Math.floor(nodes / 2) + 1', 'Math.max(1, Math.floor(nodes / 2))']],
    tests: ['test/stores/quorum-random.slow', 'test/stores/quorum.slow'],
    why: 'Two would have the key.',
  },
  {
    name: 'connection held while a look has no answer',
    file: 'src/call/with-lock.ts',
    change: [['const timer = after(openTime, () => this.discard());', 'const timer = after(openTime, () => {});']],
    tests: ['test/promises/g4-waiting'],
    why: 'Those who wait would take the pool from those who work.',
  },
  {
    name: 'keys in the order of the call',
    file: 'src/options/arguments.ts',
    change: [['.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))', '']],
    tests: ['test/call/several-keys'],
    why: 'Two would wait for each other.',
  },
  // G5: a holder that crashed or stood still delays the others by its lease.
  {
    name: 'lease without an end',
    file: 'lua/acquire.lua',
    change: [['put(KEYS[1], ARGV[1], ARGV[2], ARGV[8])', "redis.call('SET', KEYS[1], ARGV[1])"]],
    tests: ['test/redis/store'],
    why: 'A crash would keep the key for ever.',
  },
  {
    name: 'offer without an end',
    file: 'lua/shared/pass-on.lua',
    change: [["put(lease, holder, offer_time, '')", "redis.call('SET', lease, holder)"]],
    tests: ['test/redis/store'],
    why: 'One that is frozen would keep the others waiting for ever.',
  },
  {
    name: 'lease that stands as long as Redis says',
    file: 'lua/shared/lease.lua',
    change: [['  if time and left > tonumber(time) then', '  if time == 0 then']],
    tests: ['test/redis/topology/set-back', 'test/promises/g5-clocks.slow'],
    why: 'When the clock of Redis is set back an hour, whoever crashed before keeps its key for an hour.',
  },
  {
    name: 'expiry read off a timer',
    file: 'src/waiting/lease.ts',
    change: [["    if (this.#loss === undefined && now() >= this.expiresAt) this.lose('expired');\n", '']],
    tests: ['test/waiting/renewal', 'test/transaction/traps'],
    only: 'before any timer',
    why: 'After a stop of the process replies come before overdue timers.',
  },
  {
    name: 'gone is no loss',
    file: 'src/waiting/renewal.ts',
    change: [["      lease.lose('gone');\n", '']],
    tests: ['test/waiting/renewal'],
    only: 'somebody else has the key',
    why: 'The work would go on beside somebody else’s.',
  },
  {
    name: 'no beat',
    file: 'src/transaction/attempt.ts',
    change: [['connection.query(STILL_HERE, [])', 'Promise.resolve()']],
    tests: ['test/promises/g5-crash'],
    only: 'is not ended, however long',
    why: 'A holder that is well and awaits something else would be ended as idle.',
  },
  {
    name: 'one key: no limits',
    file: SQL,
    change: [['concat(fenced_lock.limit_times(lease_time, work_time),', 'concat(']],
    tests: ['test/database/admission-of-one-key'],
    why: 'A frozen holder would stand in the key until somebody comes who may end it.',
  },
  {
    name: 'blockers of any age',
    file: 'src/database/sql.ts',
    change: [
      [
        'a.xact_start OPERATOR(pg_catalog.<)\n      (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-)',
        'a.xact_start OPERATOR(pg_catalog.<)\n      (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+)',
      ],
    ],
    tests: ['test/database/sql', 'test/transaction/admission'],
    why: 'One that began after our lease is work that is well.',
  },
  // One run in each interval.
  {
    name: 'once: the time of the last run is not kept',
    file: SQL,
    change: [['DO UPDATE SET ran_at = excluded.ran_at', 'DO UPDATE SET ran_at = r.ran_at']],
    tests: ['test/database/runs'],
    why: 'From the second interval on everybody runs.',
  },
  {
    name: 'once: a run is marked without an admission',
    file: SQL,
    change: [['IF (our_turn > 0) IS NOT TRUE THEN', 'IF false THEN']],
    tests: ['test/database/runs'],
    why: 'Nothing would keep two of them apart.',
  },
];
