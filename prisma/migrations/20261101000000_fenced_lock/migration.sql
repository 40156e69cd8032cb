-- The database side of prisma-extension-fenced-lock.
--
-- Everything stands in a schema of its own, which schema.prisma does not list: Prisma Migrate then neither
-- sees drift in it nor drops it. An application role needs USAGE on the schema and EXECUTE on its functions,
-- no right on the tables: the functions run as their owner, with a fixed search_path.

CREATE SCHEMA fenced_lock;

-- One sequence for all keys, so that a token is never issued twice and the row of an idle key may be deleted.
-- CACHE 1: a session that kept numbers back would hand them out after higher ones had been used.
CREATE SEQUENCE fenced_lock.token AS bigint MINVALUE 1 START 1 INCREMENT 1 CACHE 1 NO CYCLE;

CREATE TABLE fenced_lock.admission (
    key         text PRIMARY KEY,
    -- Last token admitted.
    token       bigint NOT NULL,
    -- Holder of that token: after a failover that lost the end of the sequence a token can be issued twice.
    holder      uuid NOT NULL,
    -- Every token up to this one was drawn before the row existed.
    born        bigint NOT NULL,
    -- Admissions since then, and the ids of the last of them, newest first: what proves that a lost COMMIT held.
    turns       bigint NOT NULL,
    attempts    uuid[] NOT NULL,
    -- Transaction of the last admission: what proves to the guard that a token is the writer's own.
    xid         xid8,
    admitted_at timestamptz NOT NULL
) WITH (
    -- Room on the page for the next version: an admission is then a heap-only update that touches no index.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500
);

-- The crash epoch. UNLOGGED: any crash recovery empties it, and only then may an xid have been given out twice.
CREATE UNLOGGED TABLE fenced_lock.epoch (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL
);

-- Starts an epoch where crash recovery has ended one. To be called in a transaction of its own.
-- Whoever holds the row back must not hold us up.
CREATE FUNCTION fenced_lock.start_epoch() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
    INSERT INTO fenced_lock.epoch (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING
$$;

-- A time setting of the transaction becomes the smaller of ours and the one in force; 0 is "none" in both.
CREATE FUNCTION fenced_lock.limit_time(setting text, in_force numeric, ours integer) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    IF ours > 0 AND (in_force = 0 OR ours < in_force) THEN
        RETURN set_config(setting, ours::text, true);
    END IF;
    RETURN NULL;
END
$$;

-- The admission: Postgres's yes or no to a holder, for its keys, in the transaction that will write.
-- The first statement of that transaction. Each key's row is written, and so stays locked until its end.
-- One value in and one out: that is what costs least on the way, and later versions can add to both.
--   keys       sorted by their bytes, without duplicates
--   holders    random id of the holder of each
--   attempt    random id of this transaction
--   leaseTime  a client silent for so long, inside the transaction, has lost its lease: Postgres ends it; ms
--   workTime   what is left for the work: no statement runs longer; ms
--   waitTime   how long to wait for the rows; ms
--   tokens     those of a handle, which were drawn when it was registered; without, each key draws a fresh one
--   successors with tokens: the holders in whose name they stand from now on
--   durable    whether the token is going to be shown to others, so that the commit must not be lost in a crash
-- Answers with tokens and turn (as text: JSON has no 64-bit numbers), xid, pid, epoch and isolation. A token that is not
-- the key's any more, or not this holder's, is SQLSTATE FL003, with the key as its detail.
CREATE FUNCTION fenced_lock.admit(request jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    our_attempt constant uuid := request ->> 'attempt';
    lease_time  constant integer := request ->> 'leaseTime';
    wait_time   constant integer := greatest(1, (request ->> 'waitTime')::integer);
    began       constant timestamptz := clock_timestamp();
    lock_before constant text := current_setting('lock_timeout');
    keys        constant jsonb := request -> 'keys';
    our_key     text;
    our_holder  uuid;
    our_token   bigint;
    our_tokens  jsonb := '[]';
    our_turn    bigint;
    our_epoch   uuid;
    -- What set_config answers with. Assigned, and not PERFORMed, it is an expression and not a query of its own.
    is_set      text;
BEGIN
    IF jsonb_array_length(keys) NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'an admission takes 1 to 100 keys' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- What does not need the rows comes first: it is done by the time that somebody else's COMMIT lets us have them.
    is_set := fenced_lock.limit_time('idle_in_transaction_session_timeout',
        CASE WHEN current_setting('idle_in_transaction_session_timeout') = '0' THEN 0 ELSE
        extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000 END, lease_time);
    is_set := fenced_lock.limit_time('statement_timeout',
        CASE WHEN current_setting('statement_timeout') = '0' THEN 0 ELSE
        extract(epoch FROM current_setting('statement_timeout')::interval) * 1000 END, (request ->> 'workTime')::integer);
    -- A client frozen while a large result is sent to it is neither idle nor running a statement: only the
    -- connection's own timeout sees it. This setting is shown as a bare number of milliseconds.
    is_set := fenced_lock.limit_time('tcp_user_timeout', current_setting('tcp_user_timeout')::numeric, lease_time);
    SELECT e.id INTO our_epoch FROM fenced_lock.epoch AS e;

    FOR place IN 0 .. jsonb_array_length(keys) - 1 LOOP
        our_key := keys ->> place;
        our_holder := request -> 'holders' ->> place;
        our_token := request -> 'tokens' ->> place;
        IF octet_length(our_key) NOT BETWEEN 1 AND 2048 OR our_holder IS NULL THEN
            RAISE EXCEPTION 'a key has 1 to 2048 bytes, and a holder' USING ERRCODE = 'invalid_parameter_value';
        END IF;
        -- lock_timeout counts anew for each lock, so what is left is worked out anew for each key.
        is_set := set_config('lock_timeout', CASE place WHEN 0 THEN wait_time ELSE
            greatest(1, wait_time - extract(epoch FROM clock_timestamp() - began) * 1000)::integer END::text, true);
        IF our_token IS NOT NULL THEN
            -- Written, and not only looked at or locked: a snapshot from before another turn then cannot commit.
            UPDATE fenced_lock.admission AS a SET
                holder = coalesce((request -> 'successors' ->> place)::uuid, our_holder),
                turns = a.turns + 1,
                attempts = array_prepend(our_attempt, a.attempts[1:15]),
                xid = pg_current_xact_id(),
                admitted_at = clock_timestamp()
            -- By token and holder: after a failover that lost the end of the sequence a token can be issued twice.
            WHERE a.key = our_key AND a.token = our_token
                AND a.holder IN (our_holder, (request -> 'successors' ->> place)::uuid)
            RETURNING a.turns INTO our_turn;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the token % is not the last of its key any more', our_token
                    USING ERRCODE = 'FL003', DETAIL = our_key;
            END IF;
        ELSE
            LOOP
                -- UPDATE first. An upsert would draw its token before it has the row, and tokens could then commit
                -- out of their order. Here the row that is written is the row that was read, or it is read again.
                UPDATE fenced_lock.admission AS a SET
                    token = nextval('fenced_lock.token'),
                    holder = our_holder,
                    turns = a.turns + 1,
                    attempts = array_prepend(our_attempt, a.attempts[1:15]),
                    xid = pg_current_xact_id(),
                    admitted_at = clock_timestamp()
                WHERE a.key = our_key
                RETURNING a.token, a.turns INTO our_token, our_turn;
                EXIT WHEN FOUND;
                INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
                SELECT our_key, 0, our_holder, CASE WHEN s.is_called THEN s.last_value ELSE 0 END, 0, '{}',
                    clock_timestamp()
                FROM fenced_lock.token AS s
                ON CONFLICT (key) DO NOTHING;
            END LOOP;
        END IF;
        our_tokens := our_tokens || to_jsonb(our_token::text);
    END LOOP;
    -- The caller's own statements wait for locks as its role is set up to, not as we are.
    is_set := set_config('lock_timeout', lock_before, true);
    is_set := set_config('fenced_lock.token', our_token::text, true);
    is_set := set_config('fenced_lock.key', our_key, true);
    IF (request ->> 'durable')::boolean AND current_setting('synchronous_commit') IN ('off', 'local') THEN
        is_set := set_config('synchronous_commit', 'on', true);
    END IF;

    RETURN jsonb_build_object(
        'tokens', our_tokens,
        'turn', our_turn::text,
        'xid', pg_current_xact_id()::text,
        'pid', pg_backend_pid(),
        'epoch', our_epoch,
        'isolation', current_setting('transaction_isolation')
    );
END
$$;

-- What an operator wants to know of a key: its last admission, and the transaction that has its row now.
-- An UPDATE that has not committed is seen in the xmax of the version before it; no client may read the table itself.
CREATE FUNCTION fenced_lock.last_admission(
    of_key text,
    OUT token bigint, OUT turns bigint, OUT admitted_at timestamptz, OUT writer xid
)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.token, a.turns, a.admitted_at, a.xmax FROM fenced_lock.admission AS a WHERE a.key = of_key
$$;

-- What is known of a transaction whose COMMIT was not answered.
--   status     in progress | committed | aborted; future: this server never gave out the xid; NULL: too long ago
--   born       NULL where the key has no row
CREATE FUNCTION fenced_lock.evidence(
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

-- The guard: a row of a fenced table never goes back, whoever writes it and however. add-fence puts on such a table
--
--   CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON …
--       FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('<fence column>', '<policy>');
--   CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON …
--       FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('<policy>');
--
-- Row triggers run in the order of their names: zzz_ comes after the user's own, whatever they made of the fence.
-- The policy is about a writer without a token:
--   allow      may write, and the fence stays
--   require    may not (SQLSTATE FL002)
--   prove      neither, nor one whose token this transaction was not admitted with: the setting alone is anybody's
-- A writer with a token that is lower than the row's fence never may (SQLSTATE FL001).
-- It runs as whoever writes, so its operators are named in full: a role chooses its own search_path.

-- Whether this transaction was admitted with this token. By the xid of the whole transaction, which a savepoint
-- does not change; rolled back to before the admission, the row says so too.
CREATE FUNCTION fenced_lock.is_admitted(our_token bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM fenced_lock.admission AS a
        WHERE a.key = current_setting('fenced_lock.key', true)
            AND a.token = our_token AND a.xid = pg_current_xact_id_if_assigned()
    );
END
$$;

-- Transactions in which an administrator writes without a token; they stay, as a record.
CREATE TABLE fenced_lock.override (
    xid        xid8 PRIMARY KEY,
    why        text NOT NULL CHECK (why <> ''),
    by_role    name NOT NULL,
    granted_at timestamptz NOT NULL
);

-- Lets the rest of this transaction write without a token, also under require and prove. For the owner, and whom
-- the owner grants it to. A fence does not go back by it either.
CREATE FUNCTION fenced_lock.override(why text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO fenced_lock.override AS o (xid, why, by_role, granted_at)
    VALUES (pg_current_xact_id(), override.why, session_user, clock_timestamp())
    ON CONFLICT (xid) DO NOTHING;
END
$$;

CREATE FUNCTION fenced_lock.is_overridden() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM fenced_lock.override AS o WHERE o.xid = pg_current_xact_id_if_assigned()
        -- A restored dump brings records of another cluster, which gives out the same xids again.
        AND o.granted_at >= transaction_timestamp());
END
$$;

-- What the client reads in an error of the guard. The row is known by the columns of its primary key.
CREATE FUNCTION fenced_lock.detail(of_table regclass, row_fence bigint, whole_row jsonb) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT pg_catalog.jsonb_build_object(
        'schema', n.nspname, 'table', c.relname, 'fence', row_fence::text,
        'key', (
            SELECT pg_catalog.jsonb_object_agg(a.attname, whole_row -> a.attname::text)
            FROM pg_catalog.pg_index AS i
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
            WHERE i.indrelid = of_table AND i.indisprimary AND whole_row IS NOT NULL
        )
    )::text
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = of_table
$$;

-- Throws for a writer whom the policy does not let write, with our_token or, where that is NULL, without one.
CREATE FUNCTION fenced_lock.check_writer(of_table regclass, policy text, our_token bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF policy NOT IN ('allow', 'require', 'prove') THEN
        RAISE EXCEPTION 'the guard of % has the policy %, which is none of allow, require, prove', of_table, policy
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF policy OPERATOR(pg_catalog.=) 'allow' THEN
        RETURN;
    ELSIF our_token IS NOT NULL THEN
        IF policy OPERATOR(pg_catalog.=) 'require' OR fenced_lock.is_admitted(our_token) THEN
            RETURN;
        END IF;
    ELSIF fenced_lock.is_overridden() THEN
        RETURN;
    END IF;
    RAISE EXCEPTION '% is fenced: it is written under a lock, and %', of_table,
        CASE WHEN our_token IS NULL THEN 'this session has no fencing token'
            ELSE 'this transaction was not admitted with the token ' OPERATOR(pg_catalog.||) our_token::text END
        USING ERRCODE = 'FL002',
            DETAIL = fenced_lock.detail(of_table, NULL, NULL),
            HINT = 'Write inside $withLock. An administrator calls fenced_lock.override(''why'') first, in the same '
                'transaction.';
END
$$;

CREATE FUNCTION fenced_lock.refuse_stale(of_table regclass, row_fence bigint, our_token bigint, whole_row jsonb)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'a row of % carries the fence %, and the token % is lower', of_table, row_fence, our_token
        USING ERRCODE = 'FL001',
            DETAIL = fenced_lock.detail(of_table, row_fence, whole_row),
            HINT = 'It was written by a later turn, or under another key. Run the work again, under a fresh token.';
END
$$;

-- Waits for a row and locks it, before the admission of a transaction that this row has refused: its token is then
-- drawn after those of all who have written the row, and nobody can come between. As whoever asks, for a second.
CREATE FUNCTION fenced_lock.await_row(of_schema text, of_table text, row_key jsonb) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '1s'
AS $$
BEGIN
    EXECUTE (
        SELECT pg_catalog.format('SELECT FROM %I.%I AS t WHERE %s LIMIT 1 FOR NO KEY UPDATE', of_schema, of_table,
            pg_catalog.string_agg(pg_catalog.format('t.%1$I = (pg_catalog.jsonb_populate_record(NULL::%2$I.%3$I, $1)).%1$I',
                name, of_schema, of_table), ' AND '))
        FROM pg_catalog.jsonb_object_keys(row_key) AS name
    ) USING row_key;
EXCEPTION WHEN OTHERS THEN
    -- It was a courtesy: what follows decides, and says what is wrong.
END
$$;

CREATE FUNCTION fenced_lock.guard() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    our_token constant bigint := nullif(pg_catalog.current_setting('fenced_lock.token', true), '');
    row_fence bigint;
BEGIN
    -- Its call would cost as much as all the rest, so it is spared where it has nothing to say.
    IF TG_ARGV[1] OPERATOR(pg_catalog.<>) 'allow'
        AND (our_token IS NULL OR TG_ARGV[1] OPERATOR(pg_catalog.<>) 'require') THEN
        PERFORM fenced_lock.check_writer(TG_RELID, TG_ARGV[1], our_token);
    END IF;

    -- The usual name without dynamic SQL, which would cost as much as all the rest.
    IF TG_OP OPERATOR(pg_catalog.<>) 'INSERT' THEN
        IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'fence' THEN
            row_fence := OLD.fence;
        ELSE
            EXECUTE pg_catalog.format('SELECT ($1).%I', TG_ARGV[0]) INTO row_fence USING OLD;
        END IF;
        IF row_fence OPERATOR(pg_catalog.>) our_token THEN
            PERFORM fenced_lock.refuse_stale(TG_RELID, row_fence, our_token, pg_catalog.to_jsonb(OLD));
        END IF;
        IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
            RETURN OLD;
        END IF;
    ELSIF our_token IS NULL THEN
        -- A new row, of which there is nothing to remember: a restored one keeps what it had.
        RETURN NEW;
    END IF;

    -- With a token: the token. Without one the fence may rise, as in a row that is copied, and never falls.
    IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'fence' THEN
        NEW.fence := CASE WHEN our_token IS NULL THEN greatest(row_fence, NEW.fence) ELSE our_token END;
    ELSIF our_token IS NULL THEN
        EXECUTE pg_catalog.format('SELECT greatest($1, ($2).%I)', TG_ARGV[0]) INTO row_fence USING row_fence, NEW;
        NEW := pg_catalog.jsonb_populate_record(NEW, pg_catalog.jsonb_build_object(TG_ARGV[0], row_fence));
    ELSE
        NEW := pg_catalog.jsonb_populate_record(NEW, pg_catalog.jsonb_build_object(TG_ARGV[0], our_token));
    END IF;
    RETURN NEW;
END
$$;

-- The tables with a guard that fires, as the client asks for them.
CREATE FUNCTION fenced_lock.guards(
    OUT table_id oid, OUT schema_name text, OUT table_name text, OUT fence_column text
) RETURNS SETOF record
LANGUAGE sql STABLE
AS $$
    SELECT t.tgrelid, n.nspname, c.relname, pg_catalog.convert_from(
        substring(t.tgargs FROM 1 FOR position('\x00'::bytea IN t.tgargs) - 1), pg_catalog.getdatabaseencoding())
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE t.tgname = 'zzz_fenced_lock_guard' AND t.tgfoid = 'fenced_lock.guard'::regproc
        AND (t.tgenabled = 'A' OR (t.tgenabled = 'O' AND current_setting('session_replication_role') <> 'replica'))
$$;

-- TRUNCATE has no rows to look at, so under a token it looks for a fresher one, with the table locked already. The
-- column stands in the arguments of the other trigger.
CREATE FUNCTION fenced_lock.guard_truncate() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    our_token constant bigint := nullif(pg_catalog.current_setting('fenced_lock.token', true), '');
    fence_column text;
    highest bigint;
BEGIN
    PERFORM fenced_lock.check_writer(TG_RELID, TG_ARGV[0], our_token);
    IF our_token IS NOT NULL THEN
        SELECT g.fence_column INTO fence_column FROM fenced_lock.guards() AS g
        WHERE g.table_id OPERATOR(pg_catalog.=) TG_RELID;
        IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed'
            OR fence_column IS NULL THEN
            -- Fresher rows may not be visible to this snapshot, and TRUNCATE takes them all the same.
            highest := 9223372036854775807;
        ELSE
            EXECUTE pg_catalog.format('SELECT max(%I) FROM %s', fence_column, TG_RELID::regclass) INTO highest;
        END IF;
        IF highest OPERATOR(pg_catalog.>) our_token THEN
            PERFORM fenced_lock.refuse_stale(TG_RELID, highest, our_token, NULL);
        END IF;
    END IF;
    RETURN NULL;
END
$$;

GRANT USAGE ON SCHEMA fenced_lock TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fenced_lock TO PUBLIC;
REVOKE EXECUTE ON FUNCTION fenced_lock.override(text) FROM PUBLIC;

COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects 1';
