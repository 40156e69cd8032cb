// Every statement that this package sends. Values are bound; a name that a user chose stands in none of them.

/** First statement of a fenced transaction. */
export const ADMIT = 'SELECT fenced_lock.admit($1::text::jsonb)::text AS answer';

/** Where a retried admission is about to wait: its backend and transaction, so that it can be asked what they wait for. */
export const OWN_TRANSACTION =
  'SELECT pg_backend_pid() AS pid, extract(epoch FROM transaction_timestamp())::text AS began';

/** Keeps the transaction of a holder that is well, and awaits something else, from being ended as idle. */
export const STILL_HERE = 'SELECT 1';

/** Answers with our xid; fails where an earlier failure has aborted the transaction. */
export const OWN_XID = 'SELECT pg_current_xact_id_if_assigned()::text AS xid';

/**
 * Ends the backends that $1 waits for, if their transactions are older than $2 milliseconds: they began before
 * our lease, so their holders have lost theirs. One that began after now is older too, or the server's clock has been
 * set back since, and with it the time limits that would have ended that one. Only while $1 is still in its admission,
 * in the transaction that began at $3: this may have come late, and what our work waits for then is nobody's fault, nor
 * is what somebody else's admission waits for who has this backend now, as behind a pooler.
 */
export const END_BLOCKERS = `SELECT a.pid, pg_terminate_backend(a.pid) AS ended
FROM unnest(pg_blocking_pids($1::integer)) AS b(pid)
JOIN pg_stat_activity AS a ON a.pid = b.pid
WHERE a.xact_start NOT BETWEEN clock_timestamp() - make_interval(secs => $2::float8 / 1000) AND clock_timestamp()
  AND a.wait_event IS DISTINCT FROM 'SyncRep'
  AND EXISTS (
    SELECT FROM pg_stat_activity AS o WHERE o.pid = $1::integer AND position('fenced_lock.admit(' IN o.query) > 0
      AND extract(epoch FROM o.xact_start) = $3::text::numeric
  )`;

/**
 * Ends backend $1 while it is in transaction $2, of the crash epoch $3, and answers when it is gone: a connection
 * that is about to be closed must not go back to the pool as if it were whole. After a crash both numbers are given out
 * again, also together: the epoch keeps us from ending somebody else's work. A COMMIT that waits for its standby is left
 * alone: it would be cut short, and reported as committed though it is not replicated.
 */
export const END_BACKEND = `SELECT a.pid, pg_terminate_backend(a.pid, 1000) AS ended
FROM pg_stat_activity AS a
WHERE a.pid = $1::integer AND a.backend_xid = $2::text::xid8::xid
  AND a.wait_event IS DISTINCT FROM 'SyncRep'
  AND ($3::uuid IS NULL OR $3::uuid = (SELECT epoch FROM fenced_lock.evidence('', $2::text)))`;

export const EVIDENCE = `SELECT status, epoch::text, born::text, turns::text, attempts
FROM fenced_lock.evidence($1::text, $2::text)`;

export const START_EPOCH = 'SELECT 1 AS started FROM (SELECT fenced_lock.start_epoch()) AS s';

/** The tables whose guard fires in this session. */
export const GUARDS = 'SELECT schema_name, table_name, fence_column FROM fenced_lock.guards()';

/** Before an admission: waits for the row of table $1.$2 that has the columns $3. */
export const AWAIT_ROW =
  'SELECT 1 AS waited FROM (SELECT fenced_lock.await_row($1::text, $2::text, $3::text::jsonb)) AS w';

/** What an operator is shown of the keys $1, in their order: the last admission, and the transaction at work on each. */
export const LAST_ADMISSIONS = `SELECT l.token::text, l.turns::text,
  to_char(l.admitted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS admitted_at,
  a.pid, to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS working_since
FROM jsonb_array_elements_text($1::text::jsonb) WITH ORDINALITY AS k(key, place)
CROSS JOIN LATERAL fenced_lock.last_admission(k.key) AS l
LEFT JOIN pg_stat_activity AS a ON a.backend_xid = l.writer
ORDER BY k.place`;
