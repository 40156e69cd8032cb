// Every statement that this package sends. Values are bound; no statement contains a name that a user chose. All types,
// operators and functions have their schema, forms that hide an operator (IN, BETWEEN, IS DISTINCT FROM) are avoided,
// and both operands have the exact types of the operator: otherwise an object of another role that is found by
// search_path could match better and run with the rights of this role.

/** The first statement of a fenced transaction, for one key. */
export const ADMIT = `SELECT fenced_lock.admit($1::pg_catalog.text, $2::pg_catalog.uuid, $3::pg_catalog.uuid,
  $4::integer, $5::integer, $6::integer, $7::integer) AS answer`;

/** The same for several keys, or for the registered tokens of a handle. */
export const ADMIT_KEYS = `SELECT fenced_lock.admit($1::pg_catalog.text[], $2::pg_catalog.uuid[], $3::pg_catalog.uuid,
  $4::integer, $5::integer, $6::integer, $7::integer, $8::bigint[], $9::pg_catalog.uuid[], $10::boolean) AS answer`;

/**
 * The backend and the transaction of an admission that may have to wait, so that the transactions that block it can be
 * found.
 */
export const OWN_TRANSACTION = `SELECT pg_catalog.pg_backend_pid() AS pid,
  extract(epoch FROM pg_catalog.transaction_timestamp())::pg_catalog.text AS began`;

/** Sent in an idle transaction, so that Postgres does not end it by idle_in_transaction_session_timeout. */
export const STILL_HERE = 'SELECT 1';

/** Returns the transaction's xid. Fails if an earlier failure has aborted the transaction. */
export const OWN_XID = 'SELECT pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text AS xid';

/** Seconds since the epoch, by the clock of the server: that of this machine may differ, and the way there takes time. */
export const SERVER_TIME = 'SELECT extract(epoch FROM pg_catalog.clock_timestamp())::double precision AS time';

/**
 * Ends the backends that block backend $1, if their transactions are older than $2 milliseconds: they began before this
 * call's lease, so their holders have lost theirs. A transaction that seems to begin in the future counts as older: the
 * server's clock was set back since, so its time limits come late. With $5, a SERVER_TIME, also those that began before
 * that moment, however late this statement arrives. NULL for either: none by it.
 *
 * Only while $1 is still in its admission, in the transaction that began at $3. This statement may arrive late, when $1
 * waits for something else, or when another process uses the backend behind a pooler.
 *
 * Only backends whose lease was in waiting room $4: a transaction from elsewhere has not lost a lease there. With NULL,
 * every blocking backend is ended.
 */
export const END_BLOCKERS = `SELECT a.pid, pg_catalog.pg_terminate_backend(a.pid) AS ended
FROM pg_catalog.unnest(pg_catalog.pg_blocking_pids($1::integer)) AS b(pid)
JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) b.pid
WHERE (a.xact_start OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
    OR a.xact_start OPERATOR(pg_catalog.<)
      (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(secs =>
        $2::double precision OPERATOR(pg_catalog./) 1000::double precision))
    OR a.xact_start OPERATOR(pg_catalog.<) pg_catalog.to_timestamp($5::double precision))
  AND ($4::integer IS NULL OR EXISTS (
    SELECT FROM pg_catalog.pg_locks AS l
    WHERE l.pid OPERATOR(pg_catalog.=) a.pid AND l.granted AND l.locktype OPERATOR(pg_catalog.=) 'advisory'
      AND l.database OPERATOR(pg_catalog.=) a.datid AND l.objsubid OPERATOR(pg_catalog.=) 2::smallint
      AND l.classid OPERATOR(pg_catalog.=) 1179403083::pg_catalog.oid
      AND l.objid OPERATOR(pg_catalog.=) $4::integer::pg_catalog.oid
  ))
  AND coalesce(a.wait_event, '') OPERATOR(pg_catalog.<>) 'SyncRep'
  AND EXISTS (
    SELECT FROM pg_catalog.pg_stat_activity AS o
    WHERE o.pid OPERATOR(pg_catalog.=) $1::integer AND pg_catalog.strpos(o.query, 'fenced_lock.admit(') OPERATOR(pg_catalog.>) 0
      AND extract(epoch FROM o.xact_start) OPERATOR(pg_catalog.=) $3::pg_catalog.text::numeric
  )`;

/**
 * Ends backend $1 while it is in transaction $2 of crash epoch $3, and waits until it is gone, so that a connection
 * that is about to be closed does not go back to the pool. After a crash, pid and xid may both be assigned again; the
 * epoch prevents ending another transaction. A COMMIT that waits for its standby is not ended: Postgres would report it
 * as committed although it is not replicated. `working`: a statement was running on it.
 */
export const END_BACKEND = `SELECT a.pid, a.state OPERATOR(pg_catalog.=) 'active' AS working,
  pg_catalog.pg_terminate_backend(a.pid, 1000::bigint) AS ended
FROM pg_catalog.pg_stat_activity AS a
WHERE a.pid OPERATOR(pg_catalog.=) $1::integer
  AND a.backend_xid OPERATOR(pg_catalog.=) $2::pg_catalog.text::pg_catalog.xid8::pg_catalog.xid
  AND coalesce(a.wait_event, '') OPERATOR(pg_catalog.<>) 'SyncRep'
  AND ($3::pg_catalog.uuid IS NULL OR $3::pg_catalog.uuid OPERATOR(pg_catalog.=)
    (SELECT e.epoch FROM fenced_lock.evidence('', $2::pg_catalog.text) AS e))`;

/**
 * What is known of a transaction. A standby refuses to read the UNLOGGED table of the epoch, as it must: a COMMIT that it has not
 * replayed yet has the status `future` there, which would be taken for aborted.
 */
export const EVIDENCE = `SELECT e.status, e.epoch::pg_catalog.text, e.born::pg_catalog.text, e.turns::pg_catalog.text, e.attempts
FROM fenced_lock.evidence($1::pg_catalog.text, $2::pg_catalog.text) AS e`;

export const START_EPOCH = 'SELECT 1 AS started FROM (SELECT fenced_lock.start_epoch()) AS s';

/** The tables whose guard is active in this session. */
export const GUARDS = 'SELECT g.schema_name, g.table_name, g.fence_column FROM fenced_lock.guards() AS g';

/** Sent before an admission: waits for the lock on the row of table $1.$2 whose columns are $3. */
export const AWAIT_ROW = `SELECT 1 AS waited FROM (
  SELECT fenced_lock.await_row($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text::pg_catalog.jsonb)
) AS w`;

/** Keeps `fenced-lock gc` from deleting the rows of the keys $1 with holders $2 and tokens $3 (JSON arrays) as idle. */
export const TOUCH = `SELECT 1 AS touched FROM (
  SELECT fenced_lock.touch($1::pg_catalog.text::pg_catalog.jsonb, $2::pg_catalog.text::pg_catalog.jsonb,
    $3::pg_catalog.text::pg_catalog.jsonb)
) AS t`;

/** The last admission of each of the keys $1, in their order, and the transaction that works under it. */
export const LAST_ADMISSIONS = `SELECT l.token::pg_catalog.text, l.turns::pg_catalog.text,
  pg_catalog.to_char(l.admitted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS admitted_at,
  a.pid, pg_catalog.to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS working_since
FROM pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb) WITH ORDINALITY AS k(key, place)
CROSS JOIN LATERAL fenced_lock.last_admission(k.key) AS l
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.backend_xid OPERATOR(pg_catalog.=) l.writer
ORDER BY k.place`;

/** What a board says about the server's health. */
export const HEALTH = `SELECT pg_catalog.current_setting('server_version_num') AS version,
  pg_catalog.pg_is_in_recovery() AS standby,
  (SELECT pg_catalog.obj_description(n.oid, 'pg_namespace') FROM pg_catalog.pg_namespace AS n
    WHERE n.nspname OPERATOR(pg_catalog.=) 'fenced_lock'::pg_catalog.name) AS comment,
  pg_catalog.current_database()::pg_catalog.text AS database,
  -- The address at which the session came in: none with a Unix socket.
  pg_catalog.host(pg_catalog.inet_server_addr()) AS host, pg_catalog.inet_server_port() AS port`;

/**
 * What Postgres keeps of the last turns of the key $1. Each function has a snapshot of its own: where `seen` differs from
 * `turns`, a turn has committed in between.
 */
export const LAST_TURNS = `SELECT e.attempts, e.turns::pg_catalog.text, l.turns::pg_catalog.text AS seen, l.token::pg_catalog.text,
  pg_catalog.to_char(l.admitted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS admitted_at
FROM fenced_lock.evidence($1::pg_catalog.text, '1'::pg_catalog.text) AS e
CROSS JOIN fenced_lock.last_admission($1::pg_catalog.text) AS l`;

const runs = (name: string) => `SELECT n.now_ms::pg_catalog.text, n.due_ms::pg_catalog.text, n.after_ms::pg_catalog.text
FROM fenced_lock.${name}($1::pg_catalog.text, $2::integer, $3::integer, $4::integer) AS n`;

/** When a run of the key $1, once in each $2 milliseconds that begin $3 later, and $4 behind the last one, is due. */
export const NEXT_RUN = runs('next_run');

/** The same, and if it is due, it begins. */
export const MARK_RUN = runs('mark_run');
