import type { Mutant } from './mutant.js';

const file = 'prisma/migrations/20261101000000_fenced_lock/migration.sql';

/** The statement that admits a handle, up to its condition. */
const HANDLE_UPDATE = `UPDATE fenced_lock.admission AS a SET
                holder = coalesce((request -> 'successors' ->> place)::uuid, our_holder),
                turns = a.turns + 1,
                attempts = array_prepend(our_attempt, a.attempts[1:15]),
                xid = pg_current_xact_id(),
                admitted_at = clock_timestamp()
            -- By token and holder`;
const HANDLE_SELECT = `SELECT a.turns INTO our_turn FROM fenced_lock.admission AS a
            -- By token and holder`;
const HANDLE_END = `AND a.holder IN (our_holder, (request -> 'successors' ->> place)::uuid)
            RETURNING a.turns INTO our_turn;`;

export const ADMISSION: readonly Mutant[] = [
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
      ["token = nextval('fenced_lock.token'),", 'token = our_token,'],
    ],
    tests: ['test/fence/admission'],
    why: 'Who waits for the row would come into it with a token from before the wait.',
  },
  {
    name: 'handle reads its row',
    file,
    change: [
      [HANDLE_UPDATE, HANDLE_SELECT],
      [HANDLE_END, HANDLE_END.replace('RETURNING a.turns INTO our_turn;', ';')],
    ],
    tests: ['test/calls/handles-lost'],
    why: 'A row that is only read keeps nobody out.',
  },
  {
    name: 'handle locks its row without writing it',
    file,
    change: [
      [HANDLE_UPDATE, HANDLE_SELECT],
      [HANDLE_END, HANDLE_END.replace('RETURNING a.turns INTO our_turn;', 'FOR UPDATE;')],
    ],
    tests: ['test/fence/admission'],
    why: 'Under REPEATABLE READ a snapshot from before another turn meets no conflict.',
  },
  {
    name: 'handle of another holder',
    file,
    change: [["AND a.holder IN (our_holder, (request -> 'successors' ->> place)::uuid)", '']],
    tests: ['test/calls/handles-resumed'],
    why: 'After a failover a token can be issued twice.',
  },
  {
    name: 'handle of another token',
    file,
    change: [['WHERE a.key = our_key AND a.token = our_token', 'WHERE a.key = our_key']],
    tests: ['test/calls/handles-resumed'],
    why: 'Its rows would get a token that was never registered.',
  },
  {
    name: 'handle registered for the moment',
    file,
    change: [["IF (request ->> 'durable')::boolean AND", 'IF false AND']],
    tests: ['test/calls/handles-lost'],
    only: 'not issued a second time',
    why: 'A crash would give a token out again that other systems have seen.',
  },
  {
    name: 'lock_timeout kept',
    file,
    change: [["is_set := set_config('lock_timeout', lock_before, true);", '']],
    tests: ['test/fence/traps'],
    only: 'own time limits',
    why: "The caller's statements would wait for locks as long as our admission did.",
  },
  {
    name: 'idle transaction never ended',
    file,
    change: [
      [
        "extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000 END, lease_time);",
        '0 END, 0);',
      ],
    ],
    tests: ['test/promises/g5-crash'],
    only: 'idle transaction: Postgres ends it',
    why: 'A frozen holder would stand in the key until somebody comes who may end it.',
  },
  {
    name: 'receiving transaction never ended',
    file,
    change: [["current_setting('tcp_user_timeout')::numeric, lease_time);", '0, 0);']],
    tests: ['test/promises/g5-crash'],
    only: 'large result',
    why: 'A client that is frozen while it receives is neither idle nor in a statement.',
  },
  {
    name: 'statement without a time limit',
    file,
    change: [['* 1000 END, work_time);', '* 1000 END, 0);']],
    tests: ['test/fence/traps', 'test/fence/admission'],
    why: 'Where a strike cannot reach the server, this alone ends what is in flight.',
  },
  {
    name: 'attempt not remembered',
    file,
    change: [
      [
        "token = nextval('fenced_lock.token'),\n                    holder = our_holder,\n                    turns = a.turns + 1,\n                    attempts = array_prepend(our_attempt, a.attempts[1:15]),",
        "token = nextval('fenced_lock.token'),\n                    holder = our_holder,\n                    turns = a.turns + 1,",
      ],
    ],
    tests: ['test/promises/g3-outcome'],
    only: 'history of its key',
    why: 'After a crash nothing else proves that a COMMIT held.',
  },
  {
    name: 'born at nought',
    file,
    change: [['CASE WHEN s.is_called THEN s.last_value ELSE 0 END, 0,', '0, 0,']],
    tests: ['test/fence/admission'],
    why: 'The history of a row that was deleted and made anew would be taken for a whole one.',
  },
  {
    name: 'guard of equals',
    file,
    change: [
      ['IF row_fence OPERATOR(pg_catalog.>) our_token THEN', 'IF row_fence OPERATOR(pg_catalog.>=) our_token THEN'],
    ],
    tests: ['test/guard/twice'],
    why: 'A holder may write its row twice.',
  },
  {
    name: 'guard of none',
    file,
    change: [['IF row_fence OPERATOR(pg_catalog.>) our_token THEN', 'IF false THEN']],
    tests: ['test/guard/policies'],
    why: 'Raw SQL would bring a row back.',
  },
  {
    name: 'proof of another transaction',
    file,
    change: [['\n            AND a.xid OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned()', '']],
    tests: ['test/guard/policies'],
    only: 'token of another transaction',
    why: 'The setting alone is anybody’s.',
  },
];
