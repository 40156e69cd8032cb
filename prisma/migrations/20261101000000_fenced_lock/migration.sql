-- The database objects of prisma-extension-fenced-lock.
--
-- All objects are in a schema of their own, which schema.prisma does not list, so Prisma Migrate neither sees drift in
-- it nor drops it, not even in `prisma migrate reset`. An application's role needs USAGE on the schema and EXECUTE on
-- the functions that are listed below, and no right on the tables: these functions run as their owner.
--
-- The script may be applied where the objects exist: after a reset, to a restored dump, a second time by another
-- application, or after a newer version. Tokens are kept, because they must never go back. Functions become those of
-- the highest version. The script is one statement, so that psql, too, applies all of it or nothing.
--
-- No function finds a type, an operator or a function by its caller's search_path: it would run the caller's code as
-- the function's owner or, in the action of a foreign key, as the owner of the table.

DO $fenced_lock$
DECLARE
    own_path constant pg_catalog.text := pg_catalog.current_setting('search_path');
    -- The functions that an application calls, and those that the guard calls as the writing role.
    for_applications constant pg_catalog.text := '
        fenced_lock.admit(text, uuid, uuid, integer, integer, integer, integer),
        fenced_lock.admit(text[], uuid[], uuid, integer, integer, integer, integer, bigint[], uuid[], boolean),
        fenced_lock.await_row(text, text, jsonb),
        fenced_lock.check_writer(regclass, text, bigint),
        fenced_lock.detail(regclass, bigint, jsonb),
        fenced_lock.evidence(text, text),
        fenced_lock.fence_without_token(bigint, bigint),
        fenced_lock.guards(),
        fenced_lock.is_admitted(bigint),
        fenced_lock.is_overridden(),
        fenced_lock.last_admission(text),
        fenced_lock.mark_run(text, integer, integer, integer),
        fenced_lock.next_run(text, integer, integer, integer),
        fenced_lock.refuse_stale(regclass, bigint, bigint, jsonb),
        fenced_lock.start_epoch(),
        fenced_lock.touch(jsonb, jsonb, jsonb)';
    there_before pg_catalog.oid[];
    admit pg_catalog.regprocedure;
    old_admit pg_catalog.regprocedure;
    one record;
BEGIN
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

<<install>>
BEGIN
there_before := ARRAY(
    SELECT oid FROM pg_namespace WHERE nspname = 'fenced_lock'
    UNION ALL SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace('fenced_lock')
    UNION ALL SELECT oid FROM pg_proc WHERE pronamespace = to_regnamespace('fenced_lock')
);
CREATE SCHEMA IF NOT EXISTS fenced_lock;

-- Do not take over objects of another role: its triggers and functions would run with this role's rights.
FOR one IN
    SELECT o.what, pg_get_userbyid(o.owner) AS owner FROM (
        SELECT 'schema fenced_lock' AS what, nspowner AS owner FROM pg_namespace WHERE nspname = 'fenced_lock'
        UNION ALL
        SELECT 'relation fenced_lock.' || quote_ident(relname), relowner FROM pg_class
        WHERE relnamespace = 'fenced_lock'::regnamespace
        UNION ALL
        SELECT 'function ' || oid::regprocedure, proowner FROM pg_proc
        WHERE pronamespace = 'fenced_lock'::regnamespace
    ) AS o WHERE pg_get_userbyid(o.owner) <> current_user LIMIT 1
LOOP
    RAISE EXCEPTION 'the % belongs to the role %, and this runs as %', one.what, one.owner, current_user
        USING ERRCODE = 'insufficient_privilege',
            HINT = 'If that role is yours, run this as it. If nobody knows it, look at what it made before you drop it.';
END LOOP;

-- A newer version has been applied, and its objects stay.
EXIT install WHEN substring(obj_description('fenced_lock'::regnamespace, 'pg_namespace')
    FROM '^prisma-extension-fenced-lock objects ([0-9]+)$')::integer > 7;

-- One sequence for all keys, so that a token is never issued twice and the row of an idle key may be deleted. CACHE 1:
-- a session that caches numbers would issue them after higher ones.
CREATE SEQUENCE IF NOT EXISTS fenced_lock.token AS bigint MINVALUE 1 START 1 INCREMENT 1 CACHE 1 NO CYCLE;

CREATE TABLE IF NOT EXISTS fenced_lock.admission (
    key         text PRIMARY KEY,
    -- The last token that was admitted.
    token       bigint NOT NULL,
    -- The holder of that token. After a failover that lost the end of the sequence, a token can be issued twice.
    holder      uuid NOT NULL,
    -- The last token that was drawn before this row was created.
    born        bigint NOT NULL,
    -- The number of admissions since then, and the ids of the last 16 attempts, newest first. They prove that a lost
    -- COMMIT took effect.
    turns       bigint NOT NULL,
    attempts    uuid[] NOT NULL,
    -- The transaction of the last admission, and its time. They prove to the guard that a token is the writer's own. The
    -- xid alone does not: a restored dump brings xids of another cluster, and this one assigns them again. The time is
    -- never before the start of that transaction, also if the clock is set back in between.
    xid         xid8,
    admitted_at timestamptz NOT NULL
) WITH (
    -- Free space on the page for the next row version: an admission is then a heap-only update that touches no index.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500
);

-- The crash epoch. The table is UNLOGGED: any crash recovery empties it, and only after one can an xid be issued twice.
CREATE UNLOGGED TABLE IF NOT EXISTS fenced_lock.epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL
);

-- The last committed run of each key that runs once in each interval. Written in the transaction of that run.
CREATE TABLE IF NOT EXISTS fenced_lock.last_run (
    key    text PRIMARY KEY,
    -- When its work began, by the clock of this server.
    ran_at timestamptz NOT NULL
);
-- Of version 6: when the next run was due, for every caller.
IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'fenced_lock.last_run'::regclass AND attname = 'held_until') THEN
    ALTER TABLE fenced_lock.last_run DROP COLUMN held_until;
END IF;

-- Starts an epoch if crash recovery has ended the last one. Call it in a separate transaction. The lock_timeout keeps
-- another session that locks the row from delaying the caller.
CREATE OR REPLACE FUNCTION fenced_lock.start_epoch() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
    INSERT INTO fenced_lock.epoch (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING
$$;

-- Sets the timeouts of the transaction, none above the value in force, where 0 means no timeout. tcp_user_timeout is for
-- a client that is frozen while it receives a large result: it is neither idle nor running a statement. Its value has no
-- unit, and is -1 where the operating system has no such timeout: only 0 may be set there. An SQL function without
-- settings of its own: Postgres inlines it, so it costs no call.
CREATE OR REPLACE FUNCTION fenced_lock.limit_times(lease_time integer, work_time integer) RETURNS text
LANGUAGE sql
AS $$
    SELECT set_config('idle_in_transaction_session_timeout', CASE current_setting('idle_in_transaction_session_timeout')
            WHEN '0' THEN lease_time
            ELSE least(lease_time,
                (extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000)::integer)
            END::text, true)
        || set_config('statement_timeout', CASE current_setting('statement_timeout')
            WHEN '0' THEN work_time
            ELSE least(work_time, (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::integer)
            END::text, true)
        || set_config('tcp_user_timeout', CASE current_setting('tcp_user_timeout')
            WHEN '0' THEN lease_time
            ELSE greatest(0, least(lease_time, current_setting('tcp_user_timeout')::integer))
            END::text, true)
$$;

-- The admission: Postgres admits or refuses a holder for its keys, in the transaction that will write. It is the first
-- statement of that transaction. Each key's row is written, so it stays locked until the transaction ends.
--   keys       sorted by their bytes, without duplicates
--   holders    holder id for each key
--   attempt    random id of this transaction
--   lease_time Postgres ends the transaction if the client is silent for this time; ms
--   work_time  Postgres cancels a statement that runs longer; ms
--   wait_time  how long to wait for the row locks; ms
--   room       id of the waiting room of this transaction. The next holder from the same waiting room may end this
--              transaction, and no other. Stored as an advisory lock, which every role can see and which ends with the
--              transaction
--   tokens     the registered tokens of a handle; without them, a new token is drawn for each key
--   successors with tokens: the holders that replace the present ones
--   durable    whether the commit must survive a crash, because other systems will see the token
-- Returns one text, the cheapest form of a row: the turn of the last key, xid, pid, the epoch or '-', and one token for
-- each key, separated by spaces. SQLSTATE FL003: the token is not the key's last one, or another holder's. FL005: the
-- key has no row. DETAIL is the key. All arguments are checked, because every role that may call the function can send
-- any values.
CREATE OR REPLACE FUNCTION fenced_lock.admit(
    keys text[], holders uuid[], attempt uuid, lease_time integer, work_time integer, wait_time integer,
    room integer DEFAULT NULL, tokens bigint[] DEFAULT NULL, successors uuid[] DEFAULT NULL, durable boolean DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    began       timestamptz;
    lock_before constant text := current_setting('lock_timeout');
    our_key     text;
    our_holder  uuid;
    our_token   bigint;
    our_tokens  text := '';
    our_turn    bigint;
    -- The last token that was drawn before the row was inserted; NULL if the row was there.
    our_birth   bigint;
    our_epoch   uuid;
    -- Receives the result of set_config. An assignment is an expression and cheaper than PERFORM, which is a query.
    is_set      text;
    is_marked   boolean;
BEGIN
    IF (attempt IS NOT NULL AND cardinality(keys) BETWEEN 1 AND 100 AND cardinality(holders) = cardinality(keys)
        AND coalesce(cardinality(tokens) = cardinality(keys), true)
        AND coalesce(cardinality(successors) = cardinality(keys), true)) IS NOT TRUE THEN
        RAISE EXCEPTION 'an admission takes 1 to 100 keys, a holder for each, and the id of the attempt'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A value of 0 or less would switch off the limits of a transaction that nobody else may be able to end.
    IF (lease_time >= 1 AND work_time >= 1 AND wait_time >= 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'an admission takes a lease_time and a work_time of at least 1 ms, and a wait_time of at least 0'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Everything that does not need the rows comes first: it is done by the time that another transaction's COMMIT
    -- releases them.
    is_set := fenced_lock.limit_times(lease_time, work_time);
    SELECT e.id INTO our_epoch FROM fenced_lock.epoch AS e;
    -- 1179403083 is 'FLCK'. The advisory lock is taken before the row, so that no transaction has the row without it.
    -- It waits for no other transaction.
    IF room IS NOT NULL THEN
        is_marked := pg_try_advisory_xact_lock_shared(1179403083, room);
    END IF;

    FOR place IN 1 .. cardinality(keys) LOOP
        our_key := keys[place];
        our_holder := holders[place];
        our_token := tokens[place];
        -- If an array has several dimensions, or another lower bound, its elements are NULL here.
        IF (octet_length(our_key) BETWEEN 1 AND 512 AND our_holder IS NOT NULL
            AND (tokens IS NULL OR our_token IS NOT NULL)
            AND (successors IS NULL OR successors[place] IS NOT NULL)) IS NOT TRUE THEN
            RAISE EXCEPTION 'a key has 1 to 512 bytes, a holder, and one of whatever else is given'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        -- lock_timeout starts anew for each lock, so compute the rest of the wait time for each key.
        IF place = 1 THEN
            is_set := set_config('lock_timeout', greatest(1, wait_time)::text, true);
            IF cardinality(keys) > 1 THEN
                began := clock_timestamp();
            END IF;
        ELSE
            is_set := set_config('lock_timeout',
                greatest(1, wait_time - extract(epoch FROM clock_timestamp() - began) * 1000)::integer::text, true);
        END IF;
        -- The row is written, not only read or locked: a transaction with a snapshot from before another turn then cannot
        -- commit. By an upsert, which finds the row without a predicate lock: under SERIALIZABLE, those of UPDATE ... WHERE
        -- are on a page of the index or on the whole table, and let transactions of other keys fail. Behind a transaction
        -- that had the row, it reads the row again.
        IF tokens IS NOT NULL THEN
            INSERT INTO fenced_lock.admission AS a (key, token, holder, born, turns, attempts, admitted_at)
            VALUES (our_key, 0, our_holder, 0, 0, '{}', clock_timestamp())
            ON CONFLICT (key) DO UPDATE SET
                holder = coalesce(successors[place], our_holder),
                turns = a.turns + 1,
                attempts = array_prepend(attempt, a.attempts[1:15]),
                xid = pg_current_xact_id(),
                admitted_at = greatest(clock_timestamp(), transaction_timestamp())
            -- By token and holder: after a failover that lost the end of the sequence, a token can be issued twice.
            WHERE a.token = our_token AND a.holder IN (our_holder, successors[place])
            RETURNING a.turns INTO our_turn;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the token % is not the last of its key any more', our_token
                    USING ERRCODE = 'FL003', DETAIL = our_key;
            ELSIF our_turn = 0 THEN
                RAISE EXCEPTION 'the key of the token % has no row', our_token
                    USING ERRCODE = 'FL005', DETAIL = our_key,
                        HINT = 'It was deleted by gc, or was never in this database.';
            END IF;
        ELSE
            LOOP
                -- The token is drawn in DO UPDATE, when the row is locked: one that is drawn before could commit out of
                -- order. So a new row is inserted without one, and updated in the next round.
                INSERT INTO fenced_lock.admission AS a (key, token, holder, born, turns, attempts, admitted_at)
                VALUES (our_key, 0, our_holder, 0, 0, '{}', clock_timestamp())
                ON CONFLICT (key) DO UPDATE SET
                    token = nextval('fenced_lock.token'),
                    holder = our_holder,
                    born = coalesce(our_birth, a.born),
                    turns = a.turns + 1,
                    attempts = array_prepend(attempt, a.attempts[1:15]),
                    xid = pg_current_xact_id(),
                    admitted_at = greatest(clock_timestamp(), transaction_timestamp())
                RETURNING a.token, a.turns INTO our_token, our_turn;
                EXIT WHEN our_turn > 0;
                -- The row that this snapshot has may have been deleted behind a turn that it has not. Under SERIALIZABLE,
                -- Postgres itself sees to that.
                IF current_setting('transaction_isolation') = 'repeatable read' AND EXISTS (
                    SELECT FROM fenced_lock.admission AS a WHERE a.key = our_key AND a.turns > 0
                ) THEN
                    RAISE EXCEPTION 'the row of the key was deleted since this transaction began'
                        USING ERRCODE = 'serialization_failure', DETAIL = our_key;
                END IF;
                SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END INTO our_birth FROM fenced_lock.token AS s;
            END LOOP;
            our_birth := NULL;
        END IF;
        our_tokens := our_tokens || ' ' || our_token;
    END LOOP;
    -- Restore lock_timeout: the caller's own statements use the role's setting.
    is_set := set_config('lock_timeout', lock_before, true)
        || set_config('fenced_lock.token', our_token::text, true) || set_config('fenced_lock.key', our_key, true);
    IF durable AND current_setting('synchronous_commit') IN ('off', 'local') THEN
        is_set := set_config('synchronous_commit', 'on', true);
    END IF;

    RETURN concat(our_turn, ' ', pg_current_xact_id(), ' ', pg_backend_pid(), ' ', coalesce(our_epoch::text, '-'), our_tokens);
END
$$;

-- The usual admission: one key, which has a row, and no registered token. With one statement in place of the loop of the
-- general function: an expression of PL/pgSQL costs more than ten inside a statement. And by an UPDATE, which is cheaper
-- than an upsert. The general function does the rest: it creates the row of a new key, says what is wrong with an argument,
-- and admits under SERIALIZABLE.
CREATE OR REPLACE FUNCTION fenced_lock.admit(
    our_key text, our_holder uuid, attempt uuid, lease_time integer, work_time integer, wait_time integer, room integer
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    lock_before constant text := current_setting('lock_timeout');
    is_set      text;
    answer      text;
BEGIN
    IF attempt IS NOT NULL AND our_holder IS NOT NULL AND lease_time >= 1 AND work_time >= 1 AND wait_time >= 0
        AND current_setting('transaction_isolation') <> 'serializable' THEN
        -- Before the row, as in the general function: the limits, and the mark of the waiting room.
        is_set := concat(fenced_lock.limit_times(lease_time, work_time),
            set_config('lock_timeout', greatest(1, wait_time)::text, true),
            pg_try_advisory_xact_lock_shared(1179403083, room));
        UPDATE fenced_lock.admission AS a SET
            token = nextval('fenced_lock.token'),
            holder = our_holder,
            turns = a.turns + 1,
            attempts = array_prepend(attempt, a.attempts[1:15]),
            xid = pg_current_xact_id(),
            admitted_at = greatest(clock_timestamp(), transaction_timestamp())
        WHERE a.key = our_key
        RETURNING
            concat(a.turns, ' ', a.xid, ' ', pg_backend_pid(), ' ',
                coalesce((SELECT e.id FROM fenced_lock.epoch AS e)::text, '-'), ' ', a.token),
            set_config('lock_timeout', lock_before, true), set_config('fenced_lock.token', a.token::text, true),
            set_config('fenced_lock.key', a.key, true)
        INTO answer, is_set, is_set, is_set;
        IF answer IS NOT NULL THEN
            RETURN answer;
        END IF;
        is_set := set_config('lock_timeout', lock_before, true);
    END IF;
    RETURN fenced_lock.admit(ARRAY[our_key], ARRAY[our_holder], attempt, lease_time, work_time, wait_time, room);
END
$$;

-- The last admission of a key, and the transaction that has its row now, for operators. An UPDATE that has not
-- committed is visible as xmax of the previous row version. Clients may not read the table itself.
CREATE OR REPLACE FUNCTION fenced_lock.last_admission(
    of_key text,
    OUT token bigint, OUT turns bigint, OUT admitted_at timestamptz, OUT writer xid
)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.token, a.turns, a.admitted_at, a.xmax FROM fenced_lock.admission AS a WHERE a.key = of_key
$$;

-- Keeps gc from deleting the rows of open handles: of each key that still has this token and holder. At most once an
-- hour. A locked row is skipped, because the transaction that has it will update admitted_at.
CREATE OR REPLACE FUNCTION fenced_lock.touch(keys jsonb, holders jsonb, tokens jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH ours AS (
        SELECT a.key, a.token FROM (
            SELECT touch.keys ->> place AS key, (touch.tokens ->> place)::bigint AS token,
                (touch.holders ->> place)::uuid AS holder
            FROM generate_series(0, least(jsonb_array_length(touch.keys), 100) - 1) AS place
        ) AS k JOIN fenced_lock.admission AS a ON a.key = k.key AND a.token = k.token AND a.holder = k.holder
        WHERE a.admitted_at < clock_timestamp() - interval '1 hour'
        FOR NO KEY UPDATE OF a SKIP LOCKED
    )
    -- No xid: this is not the time of an admission.
    UPDATE fenced_lock.admission AS a SET admitted_at = clock_timestamp(), xid = NULL
    FROM ours WHERE a.key = ours.key AND a.token = ours.token
$$;

-- When the run after that of `ran_at` is due, by the interval of whoever asks. The intervals begin at the multiples of
-- `every` since the Unix epoch, and `shift` later; times are milliseconds since then, by the clock of this server.
--   at_least  the next run begins so much later at the earliest; ms
--   now_ms    what the clock shows
--   due_ms    when it is due: behind the interval of the last run, which lies ahead if the clock was set back since.
--             If it lies ahead by more than an interval, it does not count. NULL: now
--   after_ms  when the next interval begins
CREATE OR REPLACE FUNCTION fenced_lock.run_after(
    ran_at timestamp with time zone, every integer, shift integer, at_least integer,
    OUT now_ms bigint, OUT due_ms bigint, OUT after_ms bigint
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    ran_ms constant bigint := CASE WHEN isfinite(ran_at) THEN floor(extract(epoch FROM ran_at) * 1000) END;
BEGIN
    IF (every >= 1 AND shift >= 0 AND shift < every AND at_least BETWEEN 0 AND every) IS NOT TRUE THEN
        RAISE EXCEPTION 'a run has an interval of at least 1 ms, a shift that is shorter, and a least time until the next '
            'run from 0 to the interval' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    after_ms := ((now_ms - shift) / every + 1) * every + shift;
    IF ran_ms <= now_ms + every THEN
        due_ms := greatest(((ran_ms - shift) / every + 1) * every + shift, ran_ms + at_least);
    END IF;
    IF due_ms <= now_ms THEN
        due_ms := NULL;
    END IF;
END
$$;

-- When the next run of a key is due.
CREATE OR REPLACE FUNCTION fenced_lock.next_run(
    of_key text, every integer, shift integer, at_least integer,
    OUT now_ms bigint, OUT due_ms bigint, OUT after_ms bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (octet_length(of_key) BETWEEN 1 AND 512) IS NOT TRUE THEN
        RAISE EXCEPTION 'a run has a key of 1 to 512 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT n.now_ms, n.due_ms, n.after_ms INTO now_ms, due_ms, after_ms FROM fenced_lock.run_after(
        (SELECT r.ran_at FROM fenced_lock.last_run AS r WHERE r.key = of_key), every, shift, at_least) AS n;
END
$$;

-- Begins a run of a key if it is due, as next_run says: due_ms is NULL then. In the transaction of its work, behind the
-- admission of the same key, whose row keeps all other runs of it away to the end of the transaction: what is read here
-- is what the last of them has committed. What is kept is when it ran, so that a mark binds each caller by the caller's own
-- interval, and no longer, whoever has set it.
CREATE OR REPLACE FUNCTION fenced_lock.mark_run(
    of_key text, every integer, shift integer, at_least integer,
    OUT now_ms bigint, OUT due_ms bigint, OUT after_ms bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    our_turn bigint;
    last     timestamptz;
BEGIN
    -- A new row has no turns. By upserts, as in admit: they take no predicate lock.
    INSERT INTO fenced_lock.admission AS a (key, token, holder, born, turns, attempts, admitted_at)
    VALUES (of_key, 0, '00000000-0000-0000-0000-000000000000', 0, 0, '{}', clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET xid = a.xid
    WHERE a.xid = pg_current_xact_id() AND a.admitted_at >= transaction_timestamp()
    RETURNING a.turns INTO our_turn;
    IF (our_turn > 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'a run begins in a transaction that was admitted for its key'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = of_key;
    END IF;
    INSERT INTO fenced_lock.last_run AS r (key, ran_at) VALUES (of_key, '-infinity')
    ON CONFLICT (key) DO UPDATE SET ran_at = r.ran_at
    RETURNING r.ran_at INTO last;
    SELECT n.now_ms, n.due_ms, n.after_ms INTO now_ms, due_ms, after_ms
    FROM fenced_lock.run_after(last, every, shift, at_least) AS n;
    IF due_ms IS NULL THEN
        INSERT INTO fenced_lock.last_run AS r (key, ran_at) VALUES (of_key, to_timestamp(now_ms / 1000.0))
        ON CONFLICT (key) DO UPDATE SET ran_at = excluded.ran_at;
    END IF;
END
$$;

-- What is known of a transaction whose COMMIT got no answer.
--   status     in progress | committed | aborted; future: this server has not assigned the xid; NULL: too old
--   born       NULL if the key has no row
CREATE OR REPLACE FUNCTION fenced_lock.evidence(
    of_key text, of_xid text,
    OUT status text, OUT epoch uuid, OUT born bigint, OUT turns bigint, OUT attempts text[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    BEGIN
        status := pg_xact_status(of_xid::xid8);
    EXCEPTION WHEN invalid_parameter_value THEN
        status := 'future';
    END;
    epoch := (SELECT e.id FROM fenced_lock.epoch AS e);
    SELECT a.born, a.turns, a.attempts::text[] INTO born, turns, attempts
    FROM fenced_lock.admission AS a WHERE a.key = of_key;
END
$$;

-- The guard: a row of a fenced table never gets an older fence, whoever writes it and however. `fenced-lock add-fence`
-- creates on such a table
--
--   CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON …
--       FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('<fence column>', '<policy>');
--   CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON …
--       FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('<policy>');
--
-- Row triggers run in the order of their names: zzz_ runs after the user's own triggers, which may change the fence.
-- The policy is for a writer without a token:
--   allow      may write; the row keeps its fence
--   require    may not write (SQLSTATE FL002)
--   prove      may not write, and a token only counts if this transaction was admitted with it: any role can set the
--              setting
-- A writer whose token is lower than the row's fence may never write (SQLSTATE FL001).
-- The guard runs as the writing role or, in the action of a foreign key, as the owner of the table, with the writer's
-- search_path. The functions that it calls set their own search_path. guard and is_admitted run for each row, where SET
-- search_path would cost half as much again on PostgreSQL 14, so they write all names in full: types, operators, and
-- forms that hide an operator (IN, BETWEEN, nullif, a simple CASE).

-- Whether this transaction was admitted with this token. Compared by the xid of the whole transaction, which is the
-- same inside a savepoint. After a rollback to before the admission, the row has its earlier xid again.
CREATE OR REPLACE FUNCTION fenced_lock.is_admitted(our_token bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM fenced_lock.admission AS a
        WHERE a.key OPERATOR(pg_catalog.=) pg_catalog.current_setting('fenced_lock.key', true)
            AND a.token OPERATOR(pg_catalog.=) our_token
            AND a.xid OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned()
            AND a.admitted_at OPERATOR(pg_catalog.>=) pg_catalog.transaction_timestamp()
    );
END
$$;

-- Transactions in which an administrator may write without a token. The rows stay as a record. The time
-- tells them from transactions of another cluster with the same xid, which a restored dump brings.
CREATE TABLE IF NOT EXISTS fenced_lock.override (
    xid        xid8 PRIMARY KEY,
    why        text NOT NULL CHECK (why <> ''),
    by_role    name NOT NULL,
    granted_at timestamptz NOT NULL
);

-- Lets the rest of this transaction write without a token, also under require and prove, and set any fence. Needed if a
-- fence is higher than all tokens. For the owner, and for roles that the owner grants it to.
CREATE OR REPLACE FUNCTION fenced_lock.override(why text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO fenced_lock.override AS o (xid, why, by_role, granted_at)
    VALUES (pg_current_xact_id(), override.why, session_user, greatest(clock_timestamp(), transaction_timestamp()))
    ON CONFLICT (xid) DO UPDATE
        SET why = excluded.why, by_role = excluded.by_role, granted_at = excluded.granted_at
        WHERE o.granted_at < transaction_timestamp();
END
$$;

CREATE OR REPLACE FUNCTION fenced_lock.is_overridden() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM fenced_lock.override AS o WHERE o.xid = pg_current_xact_id_if_assigned()
        AND o.granted_at >= transaction_timestamp());
END
$$;

-- The fence that is stored if a writer without a token sets one. An existing row keeps its fence. A new row, such as a
-- copied or restored one, keeps the given fence up to the last token that was drawn: a higher fence would refuse every
-- lock.
CREATE OR REPLACE FUNCTION fenced_lock.fence_without_token(row_fence bigint, wanted bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF fenced_lock.is_overridden() THEN
        RETURN wanted;
    ELSIF row_fence IS NOT NULL OR wanted IS NULL THEN
        RETURN row_fence;
    END IF;
    RETURN (SELECT least(wanted, CASE WHEN s.is_called THEN s.last_value ELSE 0 END) FROM fenced_lock.token AS s);
END
$$;

-- DETAIL of the guard's errors, which the client reads. It identifies the row by its primary key, but only to a session
-- that may read these columns. Tests session_user, because in a cascade the current user is the owner of the table. A row
-- of a partition is one of the table that was given the guard: applications know that table, and have their rights on it.
-- The primary key is that of the partition, which is the one of the table if the table has one.
CREATE OR REPLACE FUNCTION fenced_lock.detail(of_table regclass, row_fence bigint, whole_row jsonb) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_build_object(
        'schema', n.nspname, 'table', c.relname, 'fence', row_fence::text,
        'key', (
            SELECT jsonb_object_agg(a.attname, whole_row -> a.attname::text)
            FROM pg_index AS i
            JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey)
            JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = k.attname
            WHERE i.indrelid = of_table AND i.indisprimary AND whole_row IS NOT NULL
                AND (NOT c.relrowsecurity OR pg_has_role(session_user, c.relowner, 'USAGE'))
            HAVING bool_and(has_column_privilege(session_user, c.oid, a.attnum, 'SELECT'))
        )
    )::text
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = coalesce((
        -- The trigger of a partition has that of its parent as tgparentid.
        SELECT t.tgrelid FROM pg_partition_ancestors(of_table) AS a JOIN pg_trigger AS t ON t.tgrelid = a.relid
        WHERE t.tgname = 'zzz_fenced_lock_guard' AND t.tgparentid = 0 LIMIT 1
    ), of_table)
$$;

-- Raises an error if the policy forbids the write. our_token is NULL for a writer without a token.
CREATE OR REPLACE FUNCTION fenced_lock.check_writer(of_table regclass, policy text, our_token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF policy NOT IN ('allow', 'require', 'prove') THEN
        RAISE EXCEPTION 'the guard of % has the policy %, which is none of allow, require, prove', of_table, policy
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF policy = 'allow' THEN
        RETURN;
    ELSIF our_token IS NOT NULL THEN
        IF policy = 'require' OR fenced_lock.is_admitted(our_token) THEN
            RETURN;
        END IF;
    ELSIF fenced_lock.is_overridden() THEN
        RETURN;
    END IF;
    RAISE EXCEPTION '% is fenced: it is written under a lock, and %', of_table,
        CASE WHEN our_token IS NULL THEN 'this session has no fencing token'
            ELSE 'this transaction was not admitted with the token ' || our_token::text END
        USING ERRCODE = 'FL002',
            DETAIL = fenced_lock.detail(of_table, NULL, NULL),
            HINT = 'Write by the tx of $withLock. An administrator calls fenced_lock.override(''why'') first, in the same '
                'transaction.';
END
$$;

-- row_fence is NULL if no single row is known.
CREATE OR REPLACE FUNCTION fenced_lock.refuse_stale(
    of_table regclass, row_fence bigint, our_token bigint, whole_row jsonb
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = CASE WHEN row_fence IS NULL
            THEN format('rows of %s that cannot be seen here may carry a fence above the token %s', of_table, our_token)
            ELSE format('a row of %s carries the fence %s, and the token %s is lower', of_table, row_fence, our_token) END,
        ERRCODE = 'FL001',
        DETAIL = fenced_lock.detail(of_table, row_fence, whole_row),
        HINT = CASE WHEN row_fence IS NULL
            THEN 'TRUNCATE under READ COMMITTED, as a role whom no policy hides a row from, or DELETE instead.'
            ELSE 'It was written by a later turn, or under another key. Take the lock again, which draws a fresh token, and '
                'run the work again. A handle keeps its token: release it, and take a new one.' END;
END
$$;

-- Waits for the lock on a row, before the admission of a transaction that this row's fence has refused. The token is
-- then drawn after those of all earlier writers of the row, and no other writer can come in between. Runs as the
-- calling role, for at most a second.
CREATE OR REPLACE FUNCTION fenced_lock.await_row(of_schema text, of_table text, row_key jsonb) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '1s' SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE (
        SELECT format('SELECT FROM %I.%I AS t WHERE %s LIMIT 1 FOR NO KEY UPDATE', of_schema, of_table,
            string_agg(format('t.%1$I = (jsonb_populate_record(NULL::%2$I.%3$I, $1)).%1$I', name, of_schema, of_table),
                ' AND '))
        FROM jsonb_object_keys(row_key) AS name
    ) USING row_key;
EXCEPTION WHEN OTHERS THEN
    -- Errors are ignored: the admission and the write that follow decide.
END
$$;

CREATE OR REPLACE FUNCTION fenced_lock.guard() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    setting   constant pg_catalog.text := pg_catalog.current_setting('fenced_lock.token', true);
    our_token constant bigint := CASE WHEN setting OPERATOR(pg_catalog.<>) '' THEN setting END;
    row_fence bigint;
    new_fence bigint;
    is_there  boolean;
    whole_row pg_catalog.jsonb;
    new_row   pg_catalog.record;
    moved     pg_catalog.text;
BEGIN
    -- The usual case, with as few expressions as possible. For a number, what follows does the same.
    IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND TG_ARGV[0] OPERATOR(pg_catalog.=) 'fence' THEN
        IF OLD.fence OPERATOR(pg_catalog.<=) our_token
            AND (TG_ARGV[1] OPERATOR(pg_catalog.=) 'allow' OR TG_ARGV[1] OPERATOR(pg_catalog.=) 'require') THEN
            NEW.fence := our_token;
            RETURN NEW;
        END IF;
    END IF;

    -- A call of a function costs more than all other work here, so it is skipped where it would pass. Nested IFs,
    -- because a role without rights on the schema may not even name its functions, but may write under allow.
    IF TG_ARGV[1] OPERATOR(pg_catalog.<>) 'allow' THEN
        IF our_token IS NULL OR TG_ARGV[1] OPERATOR(pg_catalog.<>) 'require' THEN
            IF our_token IS NULL OR TG_ARGV[1] OPERATOR(pg_catalog.<>) 'prove'
                OR NOT fenced_lock.is_admitted(our_token) THEN
                PERFORM fenced_lock.check_writer(TG_RELID::pg_catalog.regclass, TG_ARGV[1], our_token);
            END IF;
        END IF;
    END IF;

    -- The default column name is read without dynamic SQL, which costs more than all other work here.
    -- has_column_privilege fails if the column does not exist: ($1).name would then call a function of that name, which
    -- any role may have created.
    IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT' THEN
        IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'fence' THEN
            row_fence := OLD.fence;
        ELSE
            is_there := pg_catalog.has_column_privilege(TG_RELID, TG_ARGV[0], 'SELECT');
            EXECUTE pg_catalog.format('SELECT ($1).%I', TG_ARGV[0]) INTO row_fence USING OLD;
        END IF;
        IF row_fence OPERATOR(pg_catalog.>) our_token THEN
            -- A value of type json may be none of jsonb, such as "\u0000". The error then does not name the row.
            BEGIN
                whole_row := pg_catalog.to_jsonb(OLD);
            EXCEPTION WHEN OTHERS THEN
                whole_row := NULL;
            END;
            PERFORM fenced_lock.refuse_stale(TG_RELID::pg_catalog.regclass, row_fence, our_token, whole_row);
        END IF;
        IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
            -- Perhaps the first half of a move to another partition, by a role that cannot ask for the last token: see below.
            IF our_token IS NULL AND row_fence OPERATOR(pg_catalog.>) 0
                AND NOT pg_catalog.has_schema_privilege('fenced_lock', 'USAGE') THEN
                PERFORM pg_catalog.set_config('fenced_lock.moved', row_fence::pg_catalog.text, true);
            END IF;
            RETURN OLD;
        END IF;
    END IF;

    -- With a token, the fence becomes the token. Without one, the writer may not set the fence, and hardly any does.
    IF our_token IS NULL THEN
        IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'fence' THEN
            new_fence := NEW.fence;
        ELSE
            is_there := pg_catalog.has_column_privilege(TG_RELID, TG_ARGV[0], 'SELECT');
            -- A copy, because Postgres fetches the large values of a row that is a parameter, and would store them anew.
            new_row := NEW;
            EXECUTE pg_catalog.format('SELECT ($1).%I', TG_ARGV[0]) INTO new_fence USING new_row;
        END IF;
        IF new_fence OPERATOR(pg_catalog.=) coalesce(row_fence, 0) THEN
            RETURN NEW;
        END IF;
        -- A role without rights on the schema cannot call the function, so its fence is ignored. A new row keeps one that
        -- the role has just deleted: it may have moved to another partition, where an older holder would overwrite it.
        IF pg_catalog.has_schema_privilege('fenced_lock', 'USAGE') THEN
            new_fence := fenced_lock.fence_without_token(row_fence, new_fence);
        ELSE
            moved := pg_catalog.current_setting('fenced_lock.moved', true);
            IF TG_OP OPERATOR(pg_catalog.=) 'INSERT' AND new_fence OPERATOR(pg_catalog.>) 0
                AND moved OPERATOR(pg_catalog.<>) '' THEN
                new_fence := least(new_fence, moved::bigint);
            ELSE
                new_fence := coalesce(row_fence, 0);
            END IF;
        END IF;
    ELSE
        new_fence := our_token;
    END IF;
    IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'fence' THEN
        NEW.fence := new_fence;
    ELSE
        NEW := pg_catalog.jsonb_populate_record(NEW, pg_catalog.jsonb_build_object(TG_ARGV[0], new_fence));
    END IF;
    RETURN NEW;
END
$$;

-- The tables with an active guard, for the client.
CREATE OR REPLACE FUNCTION fenced_lock.guards(
    OUT table_id oid, OUT schema_name text, OUT table_name text, OUT fence_column text
) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT t.tgrelid, n.nspname, c.relname,
        -- No backslash: with standard_conforming_strings off, it would be an escape.
        convert_from(substring(t.tgargs FROM 1 FOR position(decode('00', 'hex') IN t.tgargs) - 1), getdatabaseencoding())
    FROM pg_trigger AS t
    JOIN pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE t.tgname = 'zzz_fenced_lock_guard' AND t.tgfoid = 'fenced_lock.guard'::regproc
        AND (t.tgenabled = 'A' OR (t.tgenabled = 'O' AND current_setting('session_replication_role') <> 'replica'))
        -- Any role may create a trigger of this name on its own table, or on another one with the right TRIGGER. It
        -- only counts if it is the guard, BEFORE each row of INSERT, UPDATE and DELETE, without a condition.
        AND t.tgnargs = 2 AND t.tgtype = 31 AND t.tgqual IS NULL AND t.tgattr::text = ''
$$;

-- TRUNCATE has no rows to check, so a writer with a token looks for a fresher fence; the table is locked already. The
-- fence column is an argument of the row trigger. TRUNCATE is refused if a fresher row may exist unseen: an older
-- snapshot and row-level security hide rows that TRUNCATE deletes all the same.
CREATE OR REPLACE FUNCTION fenced_lock.guard_truncate() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    our_token constant bigint := nullif(current_setting('fenced_lock.token', true), '');
    fence_column text;
    highest bigint;
BEGIN
    -- As in guard(): a role without rights on the schema may write under allow.
    IF TG_ARGV[0] <> 'allow' THEN
        PERFORM fenced_lock.check_writer(TG_RELID, TG_ARGV[0], our_token);
    END IF;
    IF our_token IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT g.fence_column INTO fence_column FROM fenced_lock.guards() AS g WHERE g.table_id = TG_RELID;
    IF fence_column IS NULL OR current_setting('transaction_isolation') <> 'read committed'
        OR row_security_active(TG_RELID) THEN
        PERFORM fenced_lock.refuse_stale(TG_RELID, NULL, our_token, NULL);
    END IF;
    EXECUTE format('SELECT max(%I) FROM %s', fence_column, TG_RELID::regclass) INTO highest;
    IF highest > our_token THEN
        PERFORM fenced_lock.refuse_stale(TG_RELID, highest, our_token, NULL);
    END IF;
    RETURN NULL;
END
$$;

-- ALTER DEFAULT PRIVILEGES may have granted rights on the new objects: revoke them.
FOR one IN
    SELECT o.what, x.grantee FROM (
        SELECT oid, 'SCHEMA fenced_lock' AS what, nspacl AS acl, nspowner AS owner
        FROM pg_namespace WHERE nspname = 'fenced_lock'
        UNION ALL
        SELECT oid, CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || oid::regclass, relacl, relowner
        FROM pg_class WHERE relnamespace = 'fenced_lock'::regnamespace AND relkind IN ('r', 'S')
        UNION ALL
        SELECT oid, 'FUNCTION ' || oid::regprocedure, coalesce(proacl, acldefault('f', proowner)), proowner
        FROM pg_proc WHERE pronamespace = 'fenced_lock'::regnamespace
    ) AS o CROSS JOIN aclexplode(o.acl) AS x
    WHERE x.grantee <> o.owner AND o.oid <> ALL (there_before)
LOOP
    EXECUTE format('REVOKE ALL ON %s FROM %s', one.what,
        CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END);
END LOOP;

admit := 'fenced_lock.admit(text[], uuid[], uuid, integer, integer, integer, integer, bigint[], uuid[], boolean)'::regprocedure;
-- The function of version 1.
old_admit := to_regprocedure('fenced_lock.admit(jsonb)');
-- At the first installation, all roles may lock, because the application's role is unknown. Later, the roles that could
-- lock before may lock, so rights that were revoked from PUBLIC stay revoked. override() is for the owner, and for
-- roles that the owner grants it to.
IF admit <> ALL (there_before) AND old_admit IS NULL THEN
    GRANT USAGE ON SCHEMA fenced_lock TO PUBLIC;
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', admit);
    GRANT EXECUTE ON FUNCTION fenced_lock.guard(), fenced_lock.guard_truncate() TO PUBLIC;
END IF;
FOR one IN
    SELECT x.grantee FROM pg_proc AS p CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS x
    WHERE p.oid IN (admit, old_admit) AND x.grantee <> p.proowner
LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', for_applications,
        CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END);
END LOOP;
DROP FUNCTION IF EXISTS fenced_lock.admit(jsonb);
DROP FUNCTION IF EXISTS fenced_lock.limit_time(text, numeric, integer);
DROP FUNCTION IF EXISTS fenced_lock.next_run(text, integer, integer);

COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects 7';
END install;

PERFORM set_config('search_path', own_path, true);
END
$fenced_lock$;
