// Every statement that this package sends. Values are bound; a name that a user chose stands in none of them. Types,
// operators and functions are named in full, what hides an operator (IN, BETWEEN, IS DISTINCT FROM) is not used, and the
// types on both sides of an operator are its own: in a search_path, a better match may be somebody else's, and runs as us.

/** First statement of a fenced transaction. */
export const ADMIT = `SELECT fenced_lock.admit($1::pg_catalog.text[], $2::pg_catalog.uuid[], $3::pg_catalog.uuid,
  $4::integer, $5::integer, $6::integer, $7::integer, $8::bigint[], $9::pg_catalog.uuid[], $10::boolean) AS answer`;

/** Where a retried admission is about to wait: its backend and transaction, so that it can be asked what they wait for. */
export const OWN_TRANSACTION = `SELECT pg_catalog.pg_backend_pid() AS pid,
  extract(epoch FROM pg_catalog.transaction_timestamp())::pg_catalog.text AS began`;

/** Keeps the transaction of a holder that is well, and awaits something else, from being ended as idle. */
export const STILL_HERE = 'SELECT 1';

/** Answers with our xid; fails where an earlier failure has aborted the transaction. */
export const OWN_XID = 'SELECT pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text AS xid';

/**
 * Ends the backends that $1 waits for, if their transactions are older than $2 milliseconds: they began before
 * our lease, so their holders have lost theirs. One that began after now is older too, or the server's clock has been
 * set back since, and with it the time limits that would have ended that one. Only while $1 is still in its admission,
 * in the transaction that began at $3: this may have come late, and what our work waits for then is nobody's fault, nor
 * is what somebody else's admission waits for who has this backend now, as behind a pooler. And only those that were
 * admitted from the waiting room $4, in which the lease was theirs: who came another way has lost nothing. With NULL,
 * whoever is in the way.
 */
export const END_BLOCKERS = `SELECT a.pid, pg_catalog.pg_terminate_backend(a.pid) AS ended
FROM pg_catalog.unnest(pg_catalog.pg_blocking_pids($1::integer)) AS b(pid)
JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) b.pid
WHERE (a.xact_start OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp() OR a.xact_start OPERATOR(pg_catalog.<)
    (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(secs =>
      $2::double precision OPERATOR(pg_catalog./) 1000::double precision)))
  AND coalesce(a.wait_event, '') OPERATOR(pg_catalog.<>) 'SyncRep'
  AND ($4::integer IS NULL OR EXISTS (
    SELECT FROM pg_catalog.pg_locks AS l
    WHERE l.pid OPERATOR(pg_catalog.=) a.pid AND l.granted AND l.locktype OPERATOR(pg_catalog.=) 'advisory'
      AND l.database OPERATOR(pg_catalog.=) a.datid AND l.objsubid OPERATOR(pg_catalog.=) 2::smallint
      AND l.classid OPERATOR(pg_catalog.=) 1179403083::pg_catalog.oid
      AND l.objid OPERATOR(pg_catalog.=) $4::integer::pg_catalog.oid
  ))
  AND EXISTS (
    SELECT FROM pg_catalog.pg_stat_activity AS o
    WHERE o.pid OPERATOR(pg_catalog.=) $1::integer AND pg_catalog.strpos(o.query, 'fenced_lock.admit(') OPERATOR(pg_catalog.>) 0
      AND extract(epoch FROM o.xact_start) OPERATOR(pg_catalog.=) $3::pg_catalog.text::numeric
  )`;

/**
 * Ends backend $1 while it is in transaction $2, of the crash epoch $3, and answers when it is gone: a connection
 * that is about to be closed must not go back to the pool as if it were whole. After a crash both numbers are given out
 * again, also together: the epoch keeps us from ending somebody else's work. A COMMIT that waits for its standby is left
 * alone: it would be cut short, and reported as committed though it is not replicated.
 */
export const END_BACKEND = `SELECT a.pid, pg_catalog.pg_terminate_backend(a.pid, 1000::bigint) AS ended
FROM pg_catalog.pg_stat_activity AS a
WHERE a.pid OPERATOR(pg_catalog.=) $1::integer
  AND a.backend_xid OPERATOR(pg_catalog.=) $2::pg_catalog.text::pg_catalog.xid8::pg_catalog.xid
  AND coalesce(a.wait_event, '') OPERATOR(pg_catalog.<>) 'SyncRep'
  AND ($3::pg_catalog.uuid IS NULL OR $3::pg_catalog.uuid OPERATOR(pg_catalog.=)
    (SELECT e.epoch FROM fenced_lock.evidence('', $2::pg_catalog.text) AS e))`;

export const EVIDENCE = `SELECT e.status, e.epoch::pg_catalog.text, e.born::pg_catalog.text, e.turns::pg_catalog.text, e.attempts
FROM fenced_lock.evidence($1::pg_catalog.text, $2::pg_catalog.text) AS e`;

export const START_EPOCH = 'SELECT 1 AS started FROM (SELECT fenced_lock.start_epoch()) AS s';

/** The tables whose guard fires in this session. */
export const GUARDS = 'SELECT g.schema_name, g.table_name, g.fence_column FROM fenced_lock.guards() AS g';

/** Before an admission: waits for the row of table $1.$2 that has the columns $3. */
export const AWAIT_ROW = `SELECT 1 AS waited FROM (
  SELECT fenced_lock.await_row($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text::pg_catalog.jsonb)
) AS w`;

/** Keeps the rows of the keys $1 young, whose holders are $2 and their tokens $3: arrays in JSON. */
export const TOUCH = `SELECT 1 AS touched FROM (
  SELECT fenced_lock.touch($1::pg_catalog.text::pg_catalog.jsonb, $2::pg_catalog.text::pg_catalog.jsonb,
    $3::pg_catalog.text::pg_catalog.jsonb)
) AS t`;

/** What an operator is shown of the keys $1, in their order: the last admission, and the transaction at work on each. */
export const LAST_ADMISSIONS = `SELECT l.token::pg_catalog.text, l.turns::pg_catalog.text,
  pg_catalog.to_char(l.admitted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS admitted_at,
  a.pid, pg_catalog.to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS working_since
FROM pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb) WITH ORDINALITY AS k(key, place)
CROSS JOIN LATERAL fenced_lock.last_admission(k.key) AS l
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.backend_xid OPERATOR(pg_catalog.=) l.writer
ORDER BY k.place`;

/** When a run of the key $1, once in each $2 milliseconds that begin $3 later, is due. */
export const NEXT_RUN = `SELECT n.now_ms::pg_catalog.text, n.due_ms::pg_catalog.text, n.after_ms::pg_catalog.text
FROM fenced_lock.next_run($1::pg_catalog.text, $2::integer, $3::integer) AS n`;

/** The same, and if it is due, it begins; $4: the next one comes so much later at the earliest. */
export const MARK_RUN = `SELECT n.now_ms::pg_catalog.text, n.due_ms::pg_catalog.text, n.after_ms::pg_catalog.text
FROM fenced_lock.mark_run($1::pg_catalog.text, $2::integer, $3::integer, $4::integer) AS n`;
