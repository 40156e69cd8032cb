import type { Mutant } from './mutant.js';

const file = 'prisma/migrations/20261101000000_fenced_lock/migration.sql';

/** The statement that admits a handle, up to its condition. */
const HANDLE_UPDATE = `UPDATE fenced_lock.admission AS a SET
                holder = coalesce(successors[place], our_holder),
                turns = a.turns + 1,
                attempts = array_prepend(attempt, a.attempts[1:15]),
                xid = pg_current_xact_id(),
                admitted_at = greatest(clock_timestamp(), transaction_timestamp())
            -- By token and holder`;
const HANDLE_SELECT = `SELECT a.turns INTO our_turn FROM fenced_lock.admission AS a
            -- By token and holder`;
const HANDLE_END = `AND a.holder IN (our_holder, successors[place])
            RETURNING a.turns INTO our_turn;`;

/** Where the admission of one key writes its row. */
const ONE_KEY = `        UPDATE fenced_lock.admission AS a SET
            token = nextval('fenced_lock.token'),
            holder = our_holder,
            turns = a.turns + 1,
            attempts = array_prepend(attempt, a.attempts[1:15]),`;

export const ADMISSION: readonly Mutant[] = [
  {
    name: 'one key: admission without the row',
    file,
    change: [
      [
        ONE_KEY,
        `        RETURN concat('1 ', pg_current_xact_id(), ' ', pg_backend_pid(), ' - ', nextval('fenced_lock.token'), ' -');\n${ONE_KEY}`,
      ],
    ],
    tests: ['test/promises/g1-serial'],
    why: 'A token alone does not keep a former holder from writing what the next one has read.',
  },
  {
    name: 'one key: token before the row',
    file,
    change: [
      [
        ONE_KEY,
        `        is_set := nextval('fenced_lock.token')::text;\n${ONE_KEY.replace("nextval('fenced_lock.token')", 'is_set::bigint')}`,
      ],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: 'Who waits for the row would come into it with a token from before the wait.',
  },
  {
    name: 'one key: attempt not remembered',
    file,
    change: [[ONE_KEY, ONE_KEY.replace('attempts = array_prepend(attempt, a.attempts[1:15]),', '')]],
    tests: ['test/promises/g3-outcome'],
    only: 'history of its key',
    why: 'After a crash nothing else proves that a COMMIT held.',
  },
  {
    name: 'one key: the attempt itself counts as the one before it',
    file,
    change: [['coalesce(a.attempts[2]::text', 'coalesce(a.attempts[1]::text']],
    tests: ['test/connection/plain'],
    only: 'right before it',
    why: 'No turn would begin ahead.',
  },
  {
    name: 'one key: behind who has created the row, nobody is told',
    file,
    change: [['(SELECT a.attempts[2]::text FROM fenced_lock.admission AS a WHERE a.key = our_key)', 'NULL']],
    tests: ['test/database/admission-of-one-key'],
    why: 'The second turn of a key would not begin ahead.',
  },
  {
    name: 'hint: of one key counts for all',
    file,
    change: [
      [
        "coalesce(our_epoch::text, '-'), our_tokens);",
        "coalesce(our_epoch::text, '-'), our_tokens, ' ', (SELECT a.attempts[2] FROM fenced_lock.admission AS a WHERE a.key = keys[1]));",
      ],
    ],
    tests: ['test/call/hint'],
    only: 'one of its keys',
    why: 'The function would run while a handle has another of its keys.',
  },
  {
    name: 'one key: wrong arguments where the row is there',
    file,
    change: [
      [
        'IF attempt IS NOT NULL AND our_holder IS NOT NULL AND lease_time >= 1 AND work_time >= 1 AND wait_time >= 0 THEN',
        'IF true THEN',
      ],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: 'A role could switch off the limits of a transaction that nobody else may end.',
  },
  {
    name: 'one key: lock_timeout kept',
    file,
    change: [
      [
        "set_config('lock_timeout', lock_before, true), set_config('fenced_lock.token'",
        "set_config('fenced_lock.token'",
      ],
      ['INTO answer, is_set, is_set, is_set;', 'INTO answer, is_set, is_set;'],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: "The caller's statements would wait for locks as long as our admission did.",
  },
  {
    name: 'one key: lock_timeout kept where the row is gone',
    file,
    change: [["        is_set := set_config('lock_timeout', lock_before, true);\n", '']],
    tests: ['test/database/admission-of-one-key'],
    why: "The caller's statements would wait for locks as long as our admission did.",
  },
  {
    name: 'one key: no limits',
    file,
    change: [['concat(fenced_lock.limit_times(lease_time, work_time),', 'concat(']],
    tests: ['test/database/admission-of-one-key'],
    why: 'A frozen holder would stand in the key until somebody comes who may end it.',
  },
  {
    name: 'one key: no mark of its waiting room',
    file,
    change: [['            pg_try_advisory_xact_lock_shared(1179403083, room));', "            '');"]],
    tests: ['test/database/admission-of-one-key'],
    why: 'The next holder could not end a transaction that has lost its lease.',
  },
  {
    name: 'one key: without the epoch',
    file,
    change: [["coalesce((SELECT e.id FROM fenced_lock.epoch AS e)::text, '-'), ' ', a.token", "'-', ' ', a.token"]],
    tests: ['test/database/admission-of-one-key'],
    why: 'After a crash, the transaction of another call could be taken for this one.',
  },
  {
    name: 'admission without the row',
    file,
    change: [
      ['EXIT WHEN FOUND;', 'EXIT;'],
      [
        'WHERE a.key = our_key\n                RETURNING a.token, a.turns INTO our_token, our_turn;',
        "WHERE false;\n                our_token := nextval('fenced_lock.token'); our_turn := 1;",
      ],
    ],
    tests: ['test/promises/g1-serial'],
    why: 'A token alone does not keep a former holder from writing what the next one has read.',
  },
  {
    name: 'token before the row',
    file,
    change: [
      [
        '            LOOP\n                -- UPDATE first.',
        "            LOOP\n                our_token := nextval('fenced_lock.token');\n                -- UPDATE first.",
      ],
      [
        "                    token = nextval('fenced_lock.token'),\n                    holder",
        '                    token = our_token,\n                    holder',
      ],
    ],
    tests: ['test/transaction/admission'],
    why: 'Who waits for the row would come into it with a token from before the wait.',
  },
  {
    name: 'handle reads its row',
    file,
    change: [
      [HANDLE_UPDATE, HANDLE_SELECT],
      [HANDLE_END, HANDLE_END.replace('RETURNING a.turns INTO our_turn;', ';')],
    ],
    tests: ['test/call/handles-lost'],
    why: 'A row that is only read keeps nobody out.',
  },
  {
    name: 'handle locks its row without writing it',
    file,
    change: [
      [HANDLE_UPDATE, HANDLE_SELECT],
      [HANDLE_END, HANDLE_END.replace('RETURNING a.turns INTO our_turn;', 'FOR UPDATE;')],
    ],
    tests: ['test/transaction/admission'],
    why: 'Under REPEATABLE READ a snapshot from before another turn meets no conflict.',
  },
  {
    name: 'handle of another holder',
    file,
    change: [['AND a.holder IN (our_holder, successors[place])', '']],
    tests: ['test/call/handles-resumed'],
    why: 'After a failover a token can be issued twice.',
  },
  {
    name: 'handle of another token',
    file,
    change: [['WHERE a.key = our_key AND a.token = our_token', 'WHERE a.key = our_key']],
    tests: ['test/call/handles-resumed'],
    why: 'Its rows would get a token that was never registered.',
  },
  {
    name: 'handle registered for the moment',
    file,
    change: [['IF durable AND', 'IF false AND']],
    tests: ['test/call/handles-lost'],
    only: 'not issued a second time',
    why: 'A crash would give a token out again that other systems have seen.',
  },
  {
    name: 'lock_timeout kept',
    file,
    change: [
      ["is_set := set_config('lock_timeout', lock_before, true)\n        || set_config", 'is_set := set_config'],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: "The caller's statements would wait for locks as long as our admission did.",
  },
  {
    name: 'idle transaction never ended',
    file,
    change: [
      [
        "set_config('idle_in_transaction_session_timeout', CASE current_setting('idle_in_transaction_session_timeout')",
        "concat('', CASE current_setting('idle_in_transaction_session_timeout')",
      ],
      [
        "1000)::integer)\n            END::text, true)\n        || set_config('statement_timeout'",
        "1000)::integer)\n            END::text)\n        || set_config('statement_timeout'",
      ],
    ],
    tests: ['test/promises/g5-crash'],
    only: 'idle transaction: Postgres ends it',
    why: 'A frozen holder would stand in the key until somebody comes who may end it.',
  },
  {
    name: 'receiving transaction never ended',
    file,
    change: [
      ["|| set_config('tcp_user_timeout', CASE", "|| concat('', CASE"],
      [
        "current_setting('tcp_user_timeout')::integer))\n            END::text, true)",
        "current_setting('tcp_user_timeout')::integer))\n            END::text)",
      ],
    ],
    tests: ['test/promises/g5-crash'],
    only: 'large result',
    why: 'A client that is frozen while it receives is neither idle nor in a statement.',
  },
  {
    name: 'statement without a time limit',
    file,
    change: [
      ["|| set_config('statement_timeout', CASE", "|| concat('', CASE"],
      [
        "1000)::integer)\n            END::text, true)\n        || set_config('tcp_user_timeout'",
        "1000)::integer)\n            END::text)\n        || set_config('tcp_user_timeout'",
      ],
    ],
    tests: ['test/transaction/traps', 'test/transaction/admission'],
    why: 'Where a abort cannot reach the server, this alone ends what is in flight.',
  },
  {
    name: 'idle transaction ended as late as the role says',
    file,
    change: [
      [
        `least(lease_time,
                (extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000)::integer)`,
        "(extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000)::integer",
      ],
    ],
    tests: ['test/transaction/traps'],
    only: 'own time limits',
    why: 'A frozen holder would stand in the key for as long as the role may be idle.',
  },
  {
    name: 'receiving transaction never ended where the role has limits',
    file,
    change: [
      [
        "least(lease_time, current_setting('tcp_user_timeout')::integer)",
        "current_setting('tcp_user_timeout')::integer",
      ],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: 'A client that is frozen while it receives is neither idle nor in a statement.',
  },
  {
    name: 'limits of the role overwritten',
    file,
    change: [
      [
        "least(work_time, (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::integer)",
        'work_time',
      ],
    ],
    tests: ['test/transaction/traps'],
    only: 'own time limits',
    why: 'A statement would run for longer than the role may have one run.',
  },
  {
    name: 'handle without one of its tokens',
    file,
    change: [['\n            AND (tokens IS NULL OR our_token IS NOT NULL)', '']],
    tests: ['test/database/admission-limits'],
    only: 'writes nothing',
    why: 'It would be told that somebody else has its key.',
  },
  {
    name: 'handle without one of its successors',
    file,
    change: [['\n            AND (successors IS NULL OR successors[place] IS NOT NULL)', '']],
    tests: ['test/database/admission-limits'],
    only: 'writes nothing',
    why: 'It would stay in the name of the holder before.',
  },
  {
    name: 'admission given to everybody again',
    file,
    change: [['IF admit <> ALL (there_before) AND old_admit IS NULL THEN', 'IF admit <> ALL (there_before) THEN']],
    tests: ['test/database/install'],
    why: 'What was taken from PUBLIC stays taken.',
  },
  {
    name: 'admission taken from who had it',
    file,
    change: [['WHERE p.oid IN (admit, old_admit) AND x.grantee', 'WHERE p.oid = admit AND x.grantee']],
    tests: ['test/database/install'],
    why: 'An application would not be able to lock behind the migration.',
  },
  {
    name: 'two admissions',
    file,
    change: [['DROP FUNCTION IF EXISTS fenced_lock.admit(jsonb);\n', '']],
    tests: ['test/database/install'],
    why: 'The old one keeps its rights, and nobody looks after it.',
  },
  {
    name: 'attempt not remembered',
    file,
    change: [
      [
        "token = nextval('fenced_lock.token'),\n                    holder = our_holder,\n                    turns = a.turns + 1,\n                    attempts = array_prepend(attempt, a.attempts[1:15]),",
        "token = nextval('fenced_lock.token'),\n                    holder = our_holder,\n                    turns = a.turns + 1,",
      ],
    ],
    tests: ['test/database/admission-of-one-key'],
    why: 'After a crash nothing else proves that a COMMIT held.',
  },
  {
    name: 'born at nought',
    file,
    change: [['CASE WHEN s.is_called THEN s.last_value ELSE 0 END, 0,', '0, 0,']],
    tests: ['test/transaction/admission'],
    why: 'The history of a row that was deleted and made anew would be taken for a whole one.',
  },
  {
    name: 'guard of equals',
    file,
    change: [
      ['IF row_fence OPERATOR(pg_catalog.>) our_token THEN', 'IF row_fence OPERATOR(pg_catalog.>=) our_token THEN'],
    ],
    tests: ['test/fencing/guard/twice'],
    why: 'A holder may write its row twice.',
  },
  {
    name: 'guard of none where the fence has its usual name',
    file,
    change: [['IF OLD.fence OPERATOR(pg_catalog.<=) our_token\n', 'IF true\n']],
    tests: ['test/fencing/guard/policies'],
    why: 'Raw SQL would bring a row back.',
  },
  {
    name: 'guard without proof where the fence has its usual name',
    file,
    change: [
      [
        "            AND (TG_ARGV[1] OPERATOR(pg_catalog.=) 'allow' OR TG_ARGV[1] OPERATOR(pg_catalog.=) 'require') THEN",
        '            THEN',
      ],
    ],
    tests: ['test/fencing/guard/policies'],
    why: 'The setting alone is anybody’s.',
  },
  {
    name: 'guard: a role without rights moves a row to another partition, and its fence is lost',
    file,
    change: [["moved OPERATOR(pg_catalog.<>) ''", 'false']],
    tests: ['test/fencing/guard/gaps'],
    only: 'moves with its row',
    why: 'An older holder would overwrite the row.',
  },
  {
    name: 'guard: any row of a role without rights keeps the fence that it sets',
    file,
    change: [['new_fence := least(new_fence, moved::bigint);', 'NULL;']],
    tests: ['test/fencing/guard/gaps'],
    only: 'moves with its row',
    why: 'A fence above all tokens would refuse every lock.',
  },
  {
    name: 'guard: a type is found by the search_path of who writes',
    file,
    change: [['whole_row pg_catalog.jsonb;', 'whole_row jsonb;']],
    tests: ['test/database/guard'],
    only: 'runs nothing as anybody else',
    why: 'Code of an attacker would run as the owner of the table.',
  },
  {
    name: 'guard: large values of a row are stored anew',
    file,
    change: [['INTO new_fence USING new_row;', 'INTO new_fence USING NEW;']],
    tests: ['test/fencing/guard/gaps'],
    only: 'large values',
    why: 'Each write of a row would write all of it to the log of Postgres and to its table.',
  },
  {
    name: 'guard: json that is no jsonb hides that a write is stale',
    file,
    change: [
      [
        'EXCEPTION WHEN OTHERS THEN\n                whole_row := NULL;',
        'EXCEPTION WHEN division_by_zero THEN\n                whole_row := NULL;',
      ],
    ],
    tests: ['test/fencing/guard/gaps'],
    only: 'none of jsonb',
    why: 'The caller would be told an error of its JSON, and the run would not be repeated.',
  },
  {
    name: 'guard of none',
    file,
    change: [['IF row_fence OPERATOR(pg_catalog.>) our_token THEN', 'IF false THEN']],
    tests: ['test/fencing/guard/policies'],
    why: 'Raw SQL would bring a row back.',
  },
  {
    name: 'proof of another transaction',
    file,
    change: [['\n            AND a.xid OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned()', '']],
    tests: ['test/fencing/guard/policies'],
    only: 'another transaction got meanwhile',
    why: 'The setting alone is anybody’s.',
  },
  {
    name: 'proof by an admission of a dump',
    file,
    change: [['\n            AND a.admitted_at OPERATOR(pg_catalog.>=) pg_catalog.transaction_timestamp()', '']],
    tests: ['test/fencing/guard/policies'],
    only: 'as it was restored',
    why: 'Another cluster had given the same xid to another transaction.',
  },
  {
    name: 'proof by a row of a dump that was kept from gc',
    file,
    change: [['SET admitted_at = clock_timestamp(), xid = NULL', 'SET admitted_at = clock_timestamp()']],
    tests: ['test/fencing/guard/policies'],
    only: 'kept from gc since',
    why: 'Another cluster had given the same xid to another transaction.',
  },
  {
    name: 'one key: no proof behind a clock that was set back',
    file,
    change: [
      [
        'admitted_at = greatest(clock_timestamp(), transaction_timestamp())\n        WHERE a.key = our_key',
        'admitted_at = clock_timestamp()\n        WHERE a.key = our_key',
      ],
    ],
    tests: ['test/fencing/guard/clock-set-back.slow'],
    why: 'Valid writes of the holder would be refused.',
  },
  {
    name: 'no proof behind a clock that was set back',
    file,
    change: [
      [
        'admitted_at = greatest(clock_timestamp(), transaction_timestamp())\n                WHERE a.key = our_key',
        'admitted_at = clock_timestamp()\n                WHERE a.key = our_key',
      ],
    ],
    tests: ['test/fencing/guard/clock-set-back.slow'],
    why: 'Valid writes of the holder would be refused.',
  },
  {
    name: 'handle: no proof behind a clock that was set back',
    file,
    change: [
      [
        HANDLE_UPDATE,
        HANDLE_UPDATE.replace('greatest(clock_timestamp(), transaction_timestamp())', 'clock_timestamp()'),
      ],
    ],
    tests: ['test/fencing/guard/clock-set-back.slow'],
    why: 'Valid writes of the holder would be refused.',
  },
  {
    name: 'override: the record of a dump stays in its place',
    file,
    change: [
      [
        'DO UPDATE\n        SET why = excluded.why, by_role = excluded.by_role, granted_at = excluded.granted_at\n        WHERE o.granted_at < transaction_timestamp();',
        'DO NOTHING;',
      ],
    ],
    tests: ['test/fencing/guard/policies'],
    only: 'record in a restored dump',
    why: 'An administrator would be refused, and not on record.',
  },
  {
    name: 'refusal: a row of a partition has no model',
    file,
    change: [['AND t.tgparentid = 0 LIMIT 1', 'AND t.tgrelid = of_table LIMIT 1']],
    tests: ['test/fencing/refusal'],
    only: 'partition',
    why: 'A retry would not lock the row first, and could be refused again and again.',
  },
  {
    name: 'refusal: a row has no key where only its partition has one',
    file,
    change: [['WHERE i.indrelid = of_table AND i.indisprimary', 'WHERE i.indrelid = c.oid AND i.indisprimary']],
    tests: ['test/fencing/refusal'],
    only: 'primary key of its partition',
    why: 'The error would not tell which row it was.',
  },
  {
    name: 'refusal: rights on the columns of a table by their places in a partition',
    file,
    change: [['session_user, c.oid, a.attnum,', 'session_user, c.oid, k.attnum,']],
    tests: ['test/fencing/refusal'],
    only: 'primary key of its partition',
    why: 'A row could be shown to a role that may not read its key, and hidden from one that may.',
  },
  {
    name: 'refusal: a row of a partition is hidden from who may read its table',
    file,
    change: [['has_column_privilege(session_user, c.oid,', 'has_column_privilege(session_user, of_table,']],
    tests: ['test/fencing/refusal'],
    only: 'partition',
    why: 'Applications have their rights on the partitioned table.',
  },
  {
    name: 'a read-only database, told by the bare error',
    file: 'src/transaction/repetition.ts',
    change: [['code === READ_ONLY ||', 'false ||']],
    tests: ['test/call/read-only-database'],
    why: 'Who catches the errors of locks would not know it, nor the key.',
  },
  {
    name: 'a standby taken for a server with another error',
    file: 'src/transaction/repetition.ts',
    change: [['(code === NOT_SUPPORTED && (await this.#isStandby()))', 'false']],
    tests: ['test/call/standby'],
    only: 'withLock at once',
    why: 'The error would be none of this package, and say nothing of the primary.',
  },
  {
    name: 'another error taken for that of a standby',
    file: 'src/transaction/repetition.ts',
    change: [['(await this.#isStandby())', 'true']],
    tests: ['test/call/standby'],
    why: 'A pooler that refuses an option would be told as a read-only database.',
  },
  {
    name: 'an epoch that a standby tells',
    file,
    change: [
      [
        '    epoch := (SELECT e.id FROM fenced_lock.epoch AS e);\n    SELECT a.born',
        '    IF NOT pg_is_in_recovery() THEN epoch := (SELECT e.id FROM fenced_lock.epoch AS e); END IF;\n    SELECT a.born',
      ],
    ],
    tests: ['test/call/standby'],
    only: 'tells nothing',
    why: 'A COMMIT that it has not replayed yet would be told as rolled back.',
  },
  {
    name: 'an error at COMMIT taken for a broken connection',
    file: 'src/transaction/lost-commit.ts',
    change: [['database.isStatementError(error) ? commitFailed(leases.key, error) : ', '']],
    tests: ['test/transaction/slow-commit'],
    only: 'somebody cancels it',
    why: 'The caller would look for a fault of the network.',
  },
];
