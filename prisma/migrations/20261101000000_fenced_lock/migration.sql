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
CREATE FUNCTION fenced_lock.start_epoch() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO fenced_lock.epoch (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING
$$;

-- A time setting of the transaction becomes the smaller of ours and the one in force; 0 is "none" in both.
CREATE FUNCTION fenced_lock.limit_time(setting text, in_force numeric, ours integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF ours > 0 AND (in_force = 0 OR ours < in_force) THEN
        PERFORM set_config(setting, ours::text, true);
    END IF;
END
$$;

-- The admission: Postgres's yes or no to a holder, for its keys, in the transaction that will write.
-- The first statement of that transaction. Each key's row is written, and so stays locked until its end.
-- One value in and one out: that is what costs least on the way, and later versions can add to both.
--   keys       sorted by their bytes, without duplicates
--   holder     random id of the holder
--   attempt    random id of this transaction
--   leaseTime  a client silent for so long, inside the transaction, has lost its lease: Postgres ends it; ms
--   workTime   what is left for the work: no statement runs longer; ms
--   waitTime   how long to wait for the rows; ms
-- Answers with token and turn (as text: JSON has no 64-bit numbers), xid, pid, epoch and isolation.
CREATE FUNCTION fenced_lock.admit(request jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    our_holder  constant uuid := request ->> 'holder';
    our_attempt constant uuid := request ->> 'attempt';
    lease_time  constant integer := request ->> 'leaseTime';
    give_up     constant timestamptz :=
        clock_timestamp() + make_interval(secs => (request ->> 'waitTime')::integer / 1000.0);
    lock_before constant text := current_setting('lock_timeout');
    our_key     text;
    our_token   bigint;
    our_turn    bigint;
BEGIN
    FOR our_key IN SELECT jsonb_array_elements_text(request -> 'keys') LOOP
        -- lock_timeout counts anew for each lock, so what is left is worked out anew for each key.
        PERFORM set_config('lock_timeout',
            greatest(1, ceil(extract(epoch FROM give_up - clock_timestamp()) * 1000))::bigint::text, true);
        LOOP
            -- UPDATE first. An upsert would draw its token before it has the row, and tokens could then commit
            -- out of their order. Here the row that is written is the row that was read, or it is read again.
            UPDATE fenced_lock.admission AS a SET
                token = nextval('fenced_lock.token'),
                holder = our_holder,
                turns = a.turns + 1,
                attempts = array_prepend(our_attempt, a.attempts[1:15]),
                admitted_at = clock_timestamp()
            WHERE a.key = our_key
            RETURNING a.token, a.turns INTO our_token, our_turn;
            EXIT WHEN FOUND;
            INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
            SELECT our_key, 0, our_holder, CASE WHEN s.is_called THEN s.last_value ELSE 0 END, 0, '{}', clock_timestamp()
            FROM fenced_lock.token AS s
            ON CONFLICT (key) DO NOTHING;
        END LOOP;
    END LOOP;
    -- The caller's own statements wait for locks as its role is set up to, not as we are.
    PERFORM set_config('lock_timeout', lock_before, true);

    PERFORM fenced_lock.limit_time('idle_in_transaction_session_timeout',
        extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000, lease_time);
    PERFORM fenced_lock.limit_time('statement_timeout',
        extract(epoch FROM current_setting('statement_timeout')::interval) * 1000, (request ->> 'workTime')::integer);
    -- A client frozen while a large result is sent to it is neither idle nor running a statement: only the
    -- connection's own timeout sees it. This setting is shown as a bare number of milliseconds.
    PERFORM fenced_lock.limit_time('tcp_user_timeout', current_setting('tcp_user_timeout')::numeric, lease_time);
    PERFORM set_config('fenced_lock.token', our_token::text, true);

    RETURN jsonb_build_object(
        'token', our_token::text,
        'turn', our_turn::text,
        'xid', pg_current_xact_id()::text,
        'pid', pg_backend_pid(),
        'epoch', (SELECT e.id FROM fenced_lock.epoch AS e),
        'isolation', current_setting('transaction_isolation')
    );
END
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

GRANT USAGE ON SCHEMA fenced_lock TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fenced_lock TO PUBLIC;
