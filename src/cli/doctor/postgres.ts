import { DOCS } from '../../base/errors.js';
import { DEFAULTS } from '../../options/options.js';
import { CALLED_BY_GUARD, CALLED_BY_TRIGGERS, grantExecute, grantUsage } from '../migrations/grants.js';
import { GUARD } from '../migrations/guard-sql.js';
import { identifier } from '../migrations/identifiers.js';
import { applicationFunctions, objectsIn, versionIn } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { FROM_PUSH, onlyRole, PUSHED } from '../project/remedies.js';
import { failedMigrations, resolve } from '../servers/postgres.js';
import { type Check, type Finding, fault, ok, type PostgresSubject, warning } from './check.js';
import { fencedOf } from './fences.js';

const OLDEST = 14;
const STATEMENT_MODE = fault(
  'A pooler in statement mode is in front of this database, and has no transactions.',
  'Set pool_mode = transaction, or connect directly.',
);
const HERE = `SELECT pg_backend_pid() AS pid, current_setting('fenced_lock.doctor', true) AS mark`;

/** Must be the first check, because all others run in a transaction. */
const pooler: Check<PostgresSubject> = {
  name: 'pooler',
  essential: true,
  async look({ database }) {
    try {
      const [first, second] = await database.transaction('BEGIN', async (query) => {
        await query(`SELECT set_config('fenced_lock.doctor', 'here', true)`);
        const here = () => query<{ pid: number; mark: string }>(HERE);
        return [...(await here()), ...(await here())];
      });
      const isOne = first?.mark === 'here' && second?.mark === 'here' && first.pid === second.pid;
      return isOne ? ok('Transactions keep their connection.') : STATEMENT_MODE;
    } catch (error) {
      if (/statement pooling/i.test(String(error))) return STATEMENT_MODE;
      throw error;
    }
  },
};

const version: Check<PostgresSubject> = {
  name: 'version',
  essential: true,
  async look({ ask }) {
    const [row] = await ask<{ number: string; full: string }>(
      `SELECT current_setting('server_version_num') AS number, version() AS full`,
    );
    if (row?.full.includes('CockroachDB')) {
      return fault('This is CockroachDB.', 'Use PostgreSQL: its sequences and locks are what the promises rest on.');
    }
    const major = Math.floor(Number(row?.number) / 10_000);
    if (major >= OLDEST) return ok(`PostgreSQL ${major}.`);
    return fault(
      `PostgreSQL ${major} is older than ${OLDEST}.`,
      `Upgrade the server to PostgreSQL ${OLDEST} or later.`,
    );
  },
};

const writable: Check<PostgresSubject> = {
  name: 'writable',
  essential: true,
  async look({ ask }) {
    const [row] = await ask<{ standby: boolean; read_only: boolean }>(
      `SELECT pg_is_in_recovery() AS standby,
        (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only') AS read_only`,
    );
    if (row?.standby) return fault('This server is a standby: it only reads.', 'Connect to the primary.');
    if (!row?.read_only) return ok('Writes are possible.');
    const message = 'Transactions are read-only here (default_transaction_read_only).';
    return fault(message, 'Set it to off for this role and database.');
  },
};

const migrations: Check<PostgresSubject> = {
  name: 'migrations',
  async look({ database, migrates, ask }) {
    const failed = await failedMigrations(database);
    if (failed === undefined && !migrates) return ok('This project has none, as with prisma db push.');
    if (failed !== undefined) {
      if (failed.length === 0) return ok('No migration has failed.');
      return fault(`Failed and not resolved: ${failed.join(', ')}.`, resolve(failed));
    }
    const [table] = await ask('SELECT FROM pg_tables WHERE schemaname = $1 LIMIT 1', [database.schema]);
    if (table === undefined) return warning('Prisma Migrate has no history here.', 'npx prisma migrate deploy');
    return warning(
      'Prisma Migrate has no history here, and there are tables: migrate deploy refuses this database (P3005).',
      `Without migrations: ${PUSHED}. To go over to them: ${FROM_PUSH}`,
    );
  },
};

const schemas: Check<PostgresSubject> = {
  name: 'schemas',
  async look({ project }) {
    const { schemas: listed = [] } = (project instanceof Problem ? undefined : project.datasource) ?? {};
    if (!listed.includes('fenced_lock')) return ok('Prisma leaves the schema fenced_lock alone.');
    return fault(
      'The datasource lists fenced_lock under `schemas`: prisma migrate dev and db push would drop its tables.',
      'Remove it from that list.',
    );
  },
};

/** The script may be applied again, even if Prisma's history says that it was applied, for example after a restore. */
const install = ({ migrates, project }: PostgresSubject) => {
  if (!migrates) return PUSHED;
  const objects = project instanceof Problem ? undefined : project.history.objects;
  return objects === undefined
    ? 'npx fenced-lock init, then npx prisma migrate deploy'
    : `npx prisma migrate deploy; if nothing is left to deploy: npx prisma db execute --file ${objects.path}`;
};

/** Which of the names in $1 are not there. */
const OBJECTS = `
WITH schema AS (SELECT to_regnamespace('fenced_lock')::oid AS id), found(name) AS (
  SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname FROM pg_class AS c, schema AS s
    WHERE c.relnamespace = s.id
  UNION ALL
  SELECT 'column ' || c.relname || '.' || a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid, schema AS s
    WHERE c.relnamespace = s.id AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT 'function ' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')' FROM pg_proc AS p, schema AS s
    WHERE p.pronamespace = s.id
)
SELECT s.id IS NOT NULL AS there, obj_description(s.id, 'pg_namespace') AS comment,
  ARRAY(SELECT n FROM unnest($1::text[]) AS n EXCEPT SELECT name FROM found ORDER BY 1) AS missing
FROM schema AS s`;

const objects: Check<PostgresSubject> = {
  name: 'objects',
  essential: true,
  async look(subject) {
    const { ask, migrates } = subject;
    const { version, sql } = subject.packaged;
    const [row] = await ask<{ there: boolean; comment: string | null; missing: string[] }>(OBJECTS, [objectsIn(sql)]);
    if (!row?.there) {
      // A project that has just begun has no migrations either.
      const instead = migrates ? '' : '; to begin with migrations instead: npx fenced-lock init';
      return fault('The schema fenced_lock is not in this database.', `${install(subject)}${instead}`);
    }
    const installed = versionIn(row.comment ?? '');
    if (installed === version) {
      if (row.missing.length === 0) return ok(`Version ${installed}, as this package brings.`);
      return fault(`Missing in the schema fenced_lock: ${row.missing.join(', ')}.`, install(subject));
    }
    if (installed !== undefined && installed > version) {
      return warning(`Version ${installed} is newer than this package's ${version}.`, 'Update the package.');
    }
    return fault(
      `Version ${installed ?? 'unknown'} is not this package's ${version}.`,
      migrates ? 'npx fenced-lock upgrade, then npx prisma migrate deploy' : PUSHED,
    );
  },
};

const epoch: Check<PostgresSubject> = {
  name: 'epoch',
  async look({ ask, database, fix }) {
    const [table] = await ask(
      `SELECT FROM pg_class WHERE oid = to_regclass('fenced_lock.epoch') AND relpersistence = 'u'`,
    );
    if (table === undefined) {
      return fault(
        'The table of the crash epoch is not UNLOGGED, so it would not show a crash, and a lost COMMIT may be taken for done.',
        'ALTER TABLE fenced_lock.epoch SET UNLOGGED',
      );
    }
    if (fix) await database.query('SELECT fenced_lock.start_epoch()');
    return ok('A crash of the server is detected from the first lock on.');
  },
};

const rights: Check<PostgresSubject> = {
  name: 'rights',
  async look({ ask, role, packaged }) {
    const functions = applicationFunctions(packaged.sql);
    const [row] = await ask<{ role: string; usage: boolean; refused: string[] }>(
      // Without USAGE, the connected role cannot look the functions up, and cannot call any.
      `SELECT r.role, r.usage,
         CASE WHEN r.usage OR r.role <> current_user THEN
           ARRAY(SELECT p.proname::text FROM unnest($2::text[]) AS f JOIN pg_proc AS p ON p.oid = to_regprocedure(f)
             WHERE NOT has_function_privilege(r.role, p.oid, 'EXECUTE') ORDER BY 1)
         ELSE '{}' END AS refused
       FROM (SELECT n.role, has_schema_privilege(n.role, 'fenced_lock', 'USAGE') AS usage
         FROM (SELECT coalesce($1::text, current_user::text) AS role) AS n) AS r`,
      [role, functions],
    );
    const { role: name, usage, refused = [] } = row ?? {};
    const found: Finding[] = [];
    if (!usage) found.push(fault(`The role ${name} may not use the schema fenced_lock.`, grantUsage([`${name}`])));
    if (refused.length > 0) {
      const grant = grantExecute([`${name}`], functions);
      found.push(fault(`The role ${name} may not call ${refused.join(', ')}.`, grant));
    }
    return found.length > 0 ? found : ok(`The role ${name} may use them.`);
  },
};

/**
 * Owners of guarded tables that lack a right which the guard needs: $1 where the action of a foreign key writes the table, which
 * is done as the owner, and $2 where the owner makes or attaches partitions, which creates their guard.
 */
const OWNERS = `
SELECT pg_get_userbyid(o.id)::text AS owner, o.tables, has_schema_privilege(o.id, n.oid, 'USAGE') AS usage, r.refused
FROM (
  SELECT c.relowner AS id, bool_or(c.relkind = 'p') AS partitions, bool_or(k.acts) AS acts,
    string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid::regclass::text) AS tables
  FROM pg_class AS c CROSS JOIN LATERAL (SELECT EXISTS (
    SELECT FROM pg_constraint AS f WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.conparentid = 0
      AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))) AS acts) AS k
  WHERE EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgname = '${GUARD}')
    AND (c.relkind = 'p' OR k.acts)
  GROUP BY c.relowner
) AS o
JOIN pg_namespace AS n ON n.nspname = 'fenced_lock'
CROSS JOIN LATERAL (SELECT ARRAY(SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace = n.oid
  AND (o.acts AND p.proname = ANY ($1::text[]) OR o.partitions AND p.proname = ANY ($2::text[]))
  AND NOT has_function_privilege(o.id, p.oid, 'EXECUTE') ORDER BY 1) AS refused) AS r
WHERE r.refused <> '{}' OR NOT has_schema_privilege(o.id, n.oid, 'USAGE')
ORDER BY 1`;

interface PoorOwner {
  readonly owner: string;
  readonly tables: string;
  readonly usage: boolean;
  readonly refused: readonly string[];
}

const owners: Check<PostgresSubject> = {
  name: 'owners',
  async look({ ask }) {
    const rows = await ask<PoorOwner>(OWNERS, [CALLED_BY_GUARD, CALLED_BY_TRIGGERS]);
    if (rows.length === 0) return ok('The owners of guarded tables may run the guard.');
    return rows.map(({ owner, tables, usage, refused }) => {
      const names = refused.map((each) => each.replace(/^fenced_lock\.|\(.*$/g, '')).join(', ');
      const lacks = [...(usage ? [] : ['use the schema fenced_lock']), ...(names === '' ? [] : [`call ${names}`])];
      const grants = [
        ...(usage ? [] : [grantUsage([owner])]),
        ...(names === '' ? [] : [grantExecute([owner], refused)]),
      ];
      return fault(
        `Cascades of foreign keys and new partitions run the guard of ${tables} as the owner ${owner}, who may not ` +
          `${lacks.join(', and may not ')}.`,
        grants.join('; '),
      );
    });
  },
};

/** Roles that may lock because everybody may. Superusers and those who own the schema may in any case. */
const everybody: Check<PostgresSubject> = {
  name: 'everybody',
  async look({ ask, role, migrates }) {
    const rows = await ask<{ name: string }>(
      `SELECT r.rolname::text AS name FROM pg_roles AS r JOIN pg_namespace AS n ON n.nspname = 'fenced_lock'
       WHERE r.rolcanlogin AND NOT pg_has_role(r.oid, n.nspowner, 'MEMBER') AND r.rolname <> coalesce($1::text, current_user::text)
         AND has_database_privilege(r.oid, current_database(), 'CONNECT')
         AND has_schema_privilege('public', n.oid, 'USAGE') AND EXISTS (SELECT FROM pg_proc AS p
           WHERE p.pronamespace = n.oid AND p.proname = 'admit' AND has_function_privilege('public', p.oid, 'EXECUTE'))
       ORDER BY 1 LIMIT 5`,
      [role],
    );
    if (rows.length === 0) return ok('No other role may lock without having been given the right.');
    return warning(
      `Everybody who may connect may lock, also ${rows.map(({ name }) => identifier(name)).join(', ')}: such a role can hold up ` +
        'each key, end the handles of others, and mark their jobs as done.',
      onlyRole(migrates),
    );
  },
};

/** A role with this right can write fenced rows without a lock, whatever the guard's policy. */
const override: Check<PostgresSubject> = {
  name: 'override',
  async look({ ask }) {
    const rows = await ask<{ grantee: string | null }>(
      `SELECT r.rolname::text AS grantee
       FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
       CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
       LEFT JOIN pg_roles AS r ON r.oid = a.grantee
       WHERE p.oid = to_regprocedure('fenced_lock.override(text)') AND a.grantee <> p.proowner
         AND (r.oid IS NULL OR NOT pg_has_role(r.oid, n.nspowner, 'MEMBER'))
       ORDER BY 1`,
    );
    if (rows.length === 0) return ok('Kept for the owner of the schema.');
    return rows.map(({ grantee }) =>
      fault(
        `${grantee === null ? 'Every role' : `The role ${grantee}`} may call override(), and so write fenced rows without a lock.`,
        `REVOKE EXECUTE ON FUNCTION fenced_lock.override(text) FROM ${grantee === null ? 'PUBLIC' : identifier(grantee)}`,
      ),
    );
  },
};

/** A value of `setting` under `least` milliseconds is reported. */
const LIMITS = [
  {
    setting: 'idle_in_transaction_session_timeout',
    least: Math.ceil(DEFAULTS.leaseTime / 3),
    report: fault,
    because:
      'a healthy holder that awaits something else is ended before the renewal, at a third of the lease, keeps it',
  },
  {
    setting: 'transaction_timeout',
    least: DEFAULTS.timeout,
    report: warning,
    because: 'work is ended before its `timeout` of 30 s',
  },
  {
    setting: 'statement_timeout',
    least: 1_000,
    report: warning,
    because: 'an admission is ended that waits for the row of its key, for half a second each time',
  },
] as const;

/**
 * The settings in force for a role in this database, in milliseconds. Settings of the role override those of the
 * database.
 */
const IN_FORCE = `
WITH role AS (SELECT coalesce($1::text, current_user::text) AS name),
set_for AS (
  SELECT split_part(c.entry, '=', 1) AS name, split_part(c.entry, '=', 2) AS value,
    (s.setrole <> 0)::integer * 2 + (s.setdatabase <> 0)::integer AS weight
  FROM pg_db_role_setting AS s, unnest(s.setconfig) AS c(entry)
  WHERE s.setrole IN (0, (SELECT r.oid FROM pg_roles AS r, role WHERE r.rolname = role.name))
    AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
)
SELECT p.name, CASE WHEN v.value ~ '^[0-9]+$' THEN v.value::numeric ELSE extract(epoch FROM v.value::interval) * 1000 END::text AS ms
FROM pg_settings AS p
CROSS JOIN role
LEFT JOIN LATERAL (SELECT s.value FROM set_for AS s WHERE s.name = p.name ORDER BY s.weight DESC LIMIT 1) AS own ON true
CROSS JOIN LATERAL (SELECT CASE
  WHEN role.name = current_user THEN p.reset_val
  WHEN own.value IS NOT NULL THEN own.value
  WHEN p.source IN ('user', 'database user', 'client') THEN p.boot_val
  ELSE p.reset_val END) AS v(value)
WHERE p.name = ANY ($2::text[])`;

const timeouts: Check<PostgresSubject> = {
  name: 'timeouts',
  async look({ ask, role }) {
    const names = LIMITS.map(({ setting }) => setting);
    const rows = await ask<{ name: string; ms: string }>(IN_FORCE, [role, names]);
    const short = LIMITS.flatMap(({ setting, least, report, because }) => {
      const ms = Number(rows.find(({ name }) => name === setting)?.ms ?? 0);
      // 0 means no limit.
      if (ms === 0 || ms >= least) return [];
      return report(`${setting} is ${ms} ms: ${because}.`, `ALTER ROLE … SET ${setting} = '${least}ms' or more, or 0`);
    });
    return short.length > 0 ? short : ok('None that is too short.');
  },
};

const replicas: Check<PostgresSubject> = {
  name: 'replicas',
  async look({ ask }) {
    const [row] = await ask<{ standbys: number; names: string }>(
      `SELECT (SELECT count(*)::integer FROM pg_stat_replication) AS standbys,
         current_setting('synchronous_standby_names') AS names`,
    );
    if (!row?.standbys) return ok('No standby is connected.');
    const how =
      row.names === ''
        ? 'asynchronous: a failover may lose the last commits, and these locks with them'
        : 'synchronous';
    return ok(`${row.standbys} connected, ${how}.`);
  },
};

const SEQUENCE = 'AS bigint INCREMENT 1 CACHE 1 NO CYCLE, LOGGED';

const sequence: Check<PostgresSubject> = {
  name: 'sequence',
  essential: true,
  async look({ ask, database, fix }) {
    const [row] = await ask<{ is: string }>(
      `SELECT format('AS %s INCREMENT %s CACHE %s %s, %s', s.seqtypid::regtype, s.seqincrement, s.seqcache,
         CASE WHEN s.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END, CASE c.relpersistence WHEN 'p' THEN 'LOGGED' ELSE 'UNLOGGED' END
         ) AS is
       FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid WHERE c.oid = to_regclass('fenced_lock.token')`,
    );
    const { is = 'no sequence' } = row ?? {};
    if (is === SEQUENCE) return ok('CACHE 1, NO CYCLE, by 1.');
    const logged = is.endsWith('UNLOGGED') ? '; ALTER SEQUENCE fenced_lock.token SET LOGGED' : '';
    const mend = `ALTER SEQUENCE fenced_lock.token AS bigint NO MAXVALUE INCREMENT 1 CACHE 1 NO CYCLE${logged}`;
    const what = `fenced_lock.token was ${is}, and must be ${SEQUENCE}`;
    if (!fix) {
      return fault(`${what}: tokens would end, or come out of order, or twice.`, `doctor --fix, or ${mend}`);
    }
    await database.query(mend);
    return ok(`Repaired: ${what}.`);
  },
};

/** No lock has drawn a token above this: at a million a second, it would take 285 years. */
const BEYOND = 2n ** 53n;
const BY_HAND = `${DOCS}operators.md#a-fence-that-no-lock-has-set`;

const position: Check<PostgresSubject> = {
  name: 'sequence position',
  async look(subject) {
    const { ask, database, fix } = subject;
    const fenced = fencedOf(subject);
    const columns = await ask<{ table: string; column: string }>(
      `SELECT t.name AS table, a.attname AS column FROM unnest($1::text[], $2::text[]) AS t(name, fence)
       JOIN pg_attribute AS a ON a.attrelid = to_regclass(t.name) AND a.attname = t.fence AND a.atttypid = 'bigint'::regtype`,
      [
        ['fenced_lock.admission', ...fenced.map(({ table }) => table)],
        ['token', ...fenced.map(({ field }) => field.column)],
      ],
    );
    // Before the sequence is read: locks go on drawing tokens, and a token is drawn before it can be seen in a row.
    let [highest, where] = [0n, ''];
    for (const { table, column } of columns) {
      const [row] = await ask<{ token: string }>(`SELECT max(${identifier(column)})::text AS token FROM ${table}`);
      const token = BigInt(row?.token ?? 0);
      if (token > highest) [highest, where] = [token, table];
    }
    const [row] = await ask<{ last: string }>(
      'SELECT CASE WHEN is_called THEN last_value ELSE 0 END::text AS last FROM fenced_lock.token',
    );
    const last = BigInt(row?.last ?? 0);
    if (last >= BEYOND) {
      const message = `The sequence is at ${last}, which no lock has reached. When it ends, no lock can be taken.`;
      return fault(message, `Set it back: ${BY_HAND}`);
    }
    if (highest <= last) return ok(`At ${last}, and no higher token is in use.`);
    const behind = `The sequence is at ${last}, and token ${highest} is in use in ${where}`;
    if (highest > BEYOND) {
      const message = `${behind}, which no lock has drawn: a lock that writes its row is refused.`;
      return fault(message, `Lower it: ${BY_HAND}`);
    }
    if (fix) return ok(`${behind}: set to ${await setForward(database, highest)}.`);
    return fault(
      `${behind}, as after a restore: new holders would be refused as stale.`,
      `doctor --fix. If it was set by hand: ${BY_HAND}`,
    );
  },
};

/**
 * ALTER SEQUENCE blocks every nextval until this commits. Otherwise a token that is drawn in between could be issued
 * again.
 */
function setForward(database: PostgresSubject['database'], highest: bigint): Promise<string> {
  return database.transaction('BEGIN', async (query) => {
    await query(`SET LOCAL lock_timeout = '5s'`);
    await query('ALTER SEQUENCE fenced_lock.token CACHE 1');
    const [row] = await query<{ value: string }>(
      `SELECT setval('fenced_lock.token', greatest(last_value, $1::bigint))::text AS value FROM fenced_lock.token`,
      [highest.toString()],
    );
    return row?.value ?? '';
  });
}

export const serverChecks = [pooler, version, writable, migrations, schemas];
export const objectChecks = [objects, epoch, rights, everybody, owners, override, timeouts, replicas];
export const sequenceChecks = [sequence, position];
