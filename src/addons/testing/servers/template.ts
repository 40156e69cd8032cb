import { onPostgres, type PgClient } from './pg.js';

/** Of a statement that has waited for a lock for longer than `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03';
/** How long a transaction that a test has left open may hold up `empty`; seconds. */
const PATIENCE = 5;

/**
 * What empties a database in one round trip, with what it remembers: a copy of the rows that the migrations have inserted, and
 * where the sequences were. Triggers, rules and foreign keys are off meanwhile, so that no guard refuses and the order of the
 * tables does not matter. `session_replication_role` turns them off for the transaction, but a superuser has to permit it: an
 * owner of the tables without that right disables triggers and rules one by one, and defers foreign keys to the end. What is left
 * alone: the tokens, which only rise, and the history of the migrations. The runs of `$oncePer` are forgotten.
 *
 * `firing`: what is still on under the present `session_replication_role`. A trigger that partitions have from their parent is
 * disabled there.
 * `own`: the rows of a table are without those of the tables that inherit from it, but with those of its partitions.
 */
const EMPTIER = `
CREATE SCHEMA fenced_lock_test;
CREATE VIEW fenced_lock_test.relations AS
  SELECT c.oid, c.relkind, coalesce(pg_partition_root(c.oid), c.oid) AS root, format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'S')
    AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', 'fenced_lock', 'fenced_lock_test')
    AND c.relname <> '_prisma_migrations'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e');
CREATE TABLE fenced_lock_test.seeds (root oid NOT NULL, name text NOT NULL, columns text NOT NULL, copy text NOT NULL);
CREATE TABLE fenced_lock_test.positions (name text NOT NULL, value bigint NOT NULL, called boolean NOT NULL);
CREATE VIEW fenced_lock_test.firing AS
  SELECT format('ALTER TABLE %s DISABLE %s %I', name, kind, label) AS off,
    format('ALTER TABLE %s ENABLE %s %s %I', name, CASE enabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE '' END, kind, label) AS back
  FROM (
    SELECT tgrelid, 'TRIGGER', tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal AND tgparentid = 0
    UNION ALL SELECT ev_class, 'RULE', rulename, ev_enabled FROM pg_rewrite
  ) AS one (oid, kind, label, enabled) JOIN fenced_lock_test.relations USING (oid)
  WHERE enabled IN ('A', CASE current_setting('session_replication_role') WHEN 'replica' THEN 'R' ELSE 'O' END)
  UNION ALL
  SELECT format('ALTER TABLE %s ALTER CONSTRAINT %I DEFERRABLE INITIALLY DEFERRED', r.name, conname),
    format('ALTER TABLE %s ALTER CONSTRAINT %I %s', r.name, conname, CASE WHEN condeferrable THEN 'INITIALLY IMMEDIATE' ELSE 'NOT DEFERRABLE' END)
  FROM pg_constraint JOIN fenced_lock_test.relations r ON r.oid = conrelid JOIN fenced_lock_test.seeds USING (root)
  WHERE contype = 'f' AND NOT condeferred AND conparentid = 0 AND current_setting('session_replication_role') <> 'replica';
DO $$
DECLARE
  one record;
  own text;
  found boolean;
BEGIN
  FOR one IN SELECT * FROM fenced_lock_test.relations WHERE oid = root LOOP
    IF one.relkind = 'S' THEN
      EXECUTE format('INSERT INTO fenced_lock_test.positions SELECT %L, last_value, is_called FROM %s', one.name, one.name);
      CONTINUE;
    END IF;
    own := CASE one.relkind WHEN 'r' THEN 'ONLY ' ELSE '' END || one.name;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', own) INTO found;
    CONTINUE WHEN NOT found;
    EXECUTE format('CREATE TABLE fenced_lock_test.%I AS SELECT * FROM %s', one.oid, own);
    INSERT INTO fenced_lock_test.seeds
      SELECT one.oid, one.name, string_agg(quote_ident(attname), ', '), format('fenced_lock_test.%I', one.oid) FROM pg_attribute
      WHERE attrelid = one.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
  END LOOP;
END $$;
CREATE FUNCTION fenced_lock_test.empty() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  tables text;
  seed record;
  off text[];
  back text[];
  command text;
BEGIN
  PERFORM set_config('lock_timeout', '${PATIENCE}s', true);
  BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);
  EXCEPTION WHEN insufficient_privilege THEN -- all that fires is in fenced_lock_test.firing, then
  END;
  SELECT string_agg(name, ', ') INTO tables FROM fenced_lock_test.relations WHERE relkind <> 'S';
  SELECT coalesce(array_agg(f.off), '{}'), coalesce(array_agg(f.back), '{}') INTO off, back FROM fenced_lock_test.firing f;
  FOREACH command IN ARRAY off LOOP EXECUTE command; END LOOP;
  IF tables IS NOT NULL THEN EXECUTE 'TRUNCATE ' || tables || ' RESTART IDENTITY CASCADE'; END IF;
  IF to_regclass('fenced_lock.last_run') IS NOT NULL THEN DELETE FROM fenced_lock.last_run; END IF;
  FOR seed IN SELECT * FROM fenced_lock_test.seeds LOOP
    EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM %3$s', seed.name, seed.columns, seed.copy);
  END LOOP;
  SET CONSTRAINTS ALL IMMEDIATE;
  FOREACH command IN ARRAY back LOOP EXECUTE command; END LOOP;
  PERFORM setval(name::regclass, value, called) FROM fenced_lock_test.positions;
END $$;
`;

/** Ends the making of a database that others are copied from. */
export async function makeTemplate(url: string): Promise<void> {
  await onPostgres(url, (client) => client.query(EMPTIER));
}

/** @throws Error that names the transactions in its way, where some do not end. */
export async function emptyDatabase(url: string): Promise<void> {
  await onPostgres(url, async (client) => {
    try {
      await client.query('SELECT fenced_lock_test.empty()');
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      throw new Error(await inTheWay(client), { cause: error });
    }
  });
}

/** Says which transactions are open. A statement is null where it belongs to a role that this one may not see. */
async function inTheWay(client: PgClient): Promise<string> {
  const { rows } = await client.query(
    `SELECT format('  backend %s (%s, for %s s): %s', pid, state, floor(extract(epoch FROM clock_timestamp() - xact_start)),
       left(regexp_replace(query, '\\s+', ' ', 'g'), 200)) AS line
     FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND xact_start IS NOT NULL
     ORDER BY xact_start`,
  );
  return [
    `servers.empty() has emptied no table: it waited ${PATIENCE} s for tables that a transaction has locked.`,
    'Open transactions, and the last statement of each:',
    ...rows.map(({ line }) => String(line)),
    'Await every call of the test, and end its transactions, locks and clients before servers.empty().',
  ].join('\n');
}
