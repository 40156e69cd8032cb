import { DOCS } from '../../base/errors.js';
import { CALL_DEFAULTS } from '../../options/options.js';
import { grantExecute, grantUsage, OWNERS } from '../migrations/grants.js';
import { identifier } from '../migrations/identifiers.js';
import { applicationFunctions, objectsIn, versionIn } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { NoProject } from '../project/locate.js';
import { FROM_PUSH, objects, onlyRole, PUSHED } from '../project/remedies.js';
import { failedMigrations, resolve } from '../servers/postgres.js';
import { type Checks, fault, type PostgresSubject, warning } from './check.js';
import { fencedOf } from './fences.js';

const OLDEST = 14;

export const serverChecks: Checks<PostgresSubject> = {
  /** Must be the first check, because all others run in a transaction. */
  async pooler({ database }) {
    const isKept = await database
      .transaction('BEGIN', async (query) => {
        await query(`SELECT set_config('fenced_lock.doctor', 'here', true)`);
        return await query(`SELECT WHERE current_setting('fenced_lock.doctor', true) = 'here'`);
      })
      .then(
        ({ length }) => length === 1,
        (error: unknown) => {
          if (!/statement pooling/i.test(String(error))) throw error;
        },
      );
    if (isKept) return 'Transactions keep their connection.';
    return fault(
      'A pooler in statement mode is in front of this database, and has no transactions.',
      'Set pool_mode = transaction, or connect directly.',
    );
  },

  async version({ ask }) {
    const sql = `SELECT current_setting('server_version_num') AS number, version() AS full`;
    const [row] = await ask<{ number: string; full: string }>(sql);
    if (row?.full.includes('CockroachDB')) {
      return fault('This is CockroachDB.', 'Use PostgreSQL: its sequences and locks are what the promises rest on.');
    }
    const major = Math.floor(Number(row?.number) / 10_000);
    if (major >= OLDEST) return `PostgreSQL ${major}.`;
    const remedy = `Upgrade the server to PostgreSQL ${OLDEST} or later.`;
    return fault(`PostgreSQL ${major} is older than ${OLDEST}.`, remedy);
  },

  async writable({ ask }) {
    const [row] = await ask<{ standby: boolean; read_only: boolean }>(
      `SELECT pg_is_in_recovery() AS standby,
         (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only') AS read_only`,
    );
    if (row?.standby) return fault('This server is a standby: it only reads.', 'Connect to the primary.');
    if (!row?.read_only) return 'Writes are possible.';
    const message = 'Transactions are read-only here (default_transaction_read_only).';
    return fault(message, 'Set it to off for this role and database.');
  },

  async migrations({ database, way, ask }) {
    const failed = await failedMigrations(database);
    if (failed === undefined && way === 'push') return 'This project has none, as with prisma db push.';
    if (failed === undefined && way === 'other') return 'Prisma Migrate has no history here.';
    if (failed !== undefined) {
      if (failed.length === 0) return 'No migration has failed.';
      return fault(`Failed and not resolved: ${failed.join(', ')}.`, resolve(failed));
    }
    const [table] = await ask('SELECT FROM pg_tables WHERE schemaname = $1 LIMIT 1', [database.schema]);
    if (table === undefined) return warning('Prisma Migrate has no history here.', 'npx prisma migrate deploy');
    return warning(
      'Prisma Migrate has no history here, and there are tables: migrate deploy refuses this database (P3005).',
      `Without migrations: ${PUSHED}. To go over to them: ${FROM_PUSH}`,
    );
  },

  async schemas({ project }) {
    if (project instanceof NoProject) return { status: 'skipped', message: 'There is no Prisma schema here.' };
    if (project instanceof Problem || !project.datasource?.schemas.includes('fenced_lock')) {
      return 'Prisma leaves the schema fenced_lock alone.';
    }
    return fault(
      'The datasource lists fenced_lock under `schemas`: prisma migrate dev and db push would drop its tables.',
      'Remove it from that list.',
    );
  },
};

/** The script may be applied again, even if Prisma's history says that it was applied, for example after a restore. */
const install = ({ way, project }: PostgresSubject) => {
  const there = project instanceof Problem ? undefined : project.history.objects;
  const ofPrisma =
    there === undefined
      ? 'npx fenced-lock init, then npx prisma migrate deploy'
      : `npx prisma migrate deploy; if nothing is left to deploy: npx prisma db execute --file ${there.path}`;
  return objects(way, ofPrisma);
};

/** Whether the schema is there, its comment, and which of the objects $1 are not. */
const OBJECTS = `
WITH schema AS (SELECT to_regnamespace('fenced_lock')::oid AS id), found(name) AS (
  SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname FROM pg_class AS c, schema AS s
    WHERE c.relnamespace = s.id
  UNION ALL
  SELECT 'column ' || c.relname || '.' || a.attname
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid, schema AS s
    WHERE c.relnamespace = s.id AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT 'function ' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')' FROM pg_proc AS p, schema AS s
    WHERE p.pronamespace = s.id
)
SELECT s.id IS NOT NULL AS there, obj_description(s.id, 'pg_namespace') AS comment,
  ARRAY(SELECT n FROM unnest($1::text[]) AS n EXCEPT SELECT name FROM found ORDER BY 1) AS missing
FROM schema AS s`;

interface Rights {
  readonly role: string;
  /** `null` if all are partitions of tables of others. */
  readonly tables: string | null;
  readonly usage: boolean;
  readonly refused: readonly string[];
}

/**
 * Roles that lack a right, of those that `roles` selects. Without USAGE, the connected role cannot look the functions up, and cannot
 * call any.
 */
const lacking = (roles: string) => `
SELECT * FROM (
  SELECT r.role, r.tables, r.usage, CASE WHEN r.usage OR r.role <> current_user THEN ARRAY(
    SELECT f FROM unnest(r.functions) AS f WHERE NOT has_function_privilege(r.role, to_regprocedure(f), 'EXECUTE') ORDER BY 1
  ) ELSE '{}' END AS refused
  FROM (SELECT s.*, has_schema_privilege(s.role, 'fenced_lock', 'USAGE') AS usage FROM (${roles}) AS s) AS r
) AS l WHERE NOT l.usage OR l.refused <> '{}' ORDER BY l.role`;

/** What a role may not do, as a fault, with the statements that let it. */
function refusal({ role, usage, refused }: Rights, who: string) {
  const names = [...new Set(refused.map((each) => each.replace(/^fenced_lock\.|\(.*$/g, '')))];
  const what = [
    ...(usage ? [] : ['use the schema fenced_lock']),
    ...(names.length ? [`call ${names.join(', ')}`] : []),
  ];
  const grants = [...(usage ? [] : [grantUsage([role])]), ...(names.length ? [grantExecute([role], refused)] : [])];
  return fault(`${who} may not ${what.join(', and may not ')}.`, grants.join('; '));
}

/** A value of `setting` under `least` milliseconds is reported. */
const LIMITS = [
  {
    setting: 'idle_in_transaction_session_timeout',
    least: Math.ceil(CALL_DEFAULTS.leaseTime / 3),
    report: fault,
    because:
      'a healthy holder that awaits something else is ended before the renewal, at a third of the lease, keeps it',
  },
  {
    setting: 'transaction_timeout',
    least: CALL_DEFAULTS.timeout,
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
const SETTINGS = LIMITS.map(({ setting }) => setting);

/**
 * Sets, for the transaction, what is set for the role $1 and for the database, in place of what is set for the connected role. The
 * role's settings come last, and win.
 */
const AS_ROLE = `
SELECT set_config(c.name, c.value, true) FROM (
  SELECT name, boot_val AS value, 0 AS rank FROM pg_settings WHERE source IN ('user', 'database user', 'client')
  UNION ALL
  SELECT split_part(e.entry, '=', 1), split_part(e.entry, '=', 2), 1 + 2 * (s.setrole <> 0)::int + (s.setdatabase <> 0)::int
  FROM pg_db_role_setting AS s, unnest(s.setconfig) AS e(entry)
  WHERE s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = $1))
    AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  ORDER BY rank
) AS c WHERE c.name = ANY ($2::text[])`;

export const objectChecks: Checks<PostgresSubject> = {
  async objects(subject) {
    const { ask, way, packaged } = subject;
    const [row] = await ask<{ there: boolean; comment: string | null; missing: string[] }>(OBJECTS, [
      objectsIn(packaged.sql),
    ]);
    if (!row?.there) {
      // A project that has just begun has no migrations either.
      const instead = way !== 'push' ? '' : '; to begin with migrations instead: npx fenced-lock init';
      return fault('The schema fenced_lock is not in this database.', `${install(subject)}${instead}`);
    }
    const installed = versionIn(row.comment ?? '');
    if (installed === packaged.version) {
      if (row.missing.length === 0) return `Version ${installed}, as this package brings.`;
      return fault(`Missing in the schema fenced_lock: ${row.missing.join(', ')}.`, install(subject));
    }
    if (installed !== undefined && installed > packaged.version) {
      return warning(`Version ${installed} is newer than this package's ${packaged.version}.`, 'Update the package.');
    }
    return fault(
      `Version ${installed ?? 'unknown'} is not this package's ${packaged.version}.`,
      objects(way, 'npx fenced-lock upgrade, then npx prisma migrate deploy'),
    );
  },

  async epoch({ ask, database, fix }) {
    const unlogged = `SELECT FROM pg_class WHERE oid = to_regclass('fenced_lock.epoch') AND relpersistence = 'u'`;
    if ((await ask(unlogged)).length === 0) {
      return fault(
        'The table of the crash epoch is not UNLOGGED, so it would not show a crash, and a lost COMMIT may be taken for done.',
        'ALTER TABLE fenced_lock.epoch SET UNLOGGED',
      );
    }
    if (fix) await database.query('SELECT fenced_lock.start_epoch()');
    return 'A crash of the server is detected from the first lock on.';
  },

  async rights({ ask, role, packaged }) {
    const one = lacking(`SELECT coalesce($1::text, current_user::text) AS role, '' AS tables, $2::text[] AS functions`);
    const [lack] = await ask<Rights>(one, [role, applicationFunctions(packaged.sql)]);
    return lack === undefined ? 'The role may use them.' : refusal(lack, `The role ${lack.role}`);
  },

  /** Roles that may lock because everybody may. Superusers and those who own the schema may in any case. */
  async everybody({ ask, role, way }) {
    const others = await ask<{ name: string }>(
      `SELECT r.rolname::text AS name FROM pg_roles AS r JOIN pg_namespace AS n ON n.nspname = 'fenced_lock'
       WHERE r.rolcanlogin AND NOT pg_has_role(r.oid, n.nspowner, 'MEMBER') AND r.rolname <> coalesce($1::text, current_user::text)
         AND has_database_privilege(r.oid, current_database(), 'CONNECT')
         AND has_schema_privilege('public', n.oid, 'USAGE') AND EXISTS (SELECT FROM pg_proc AS p
           WHERE p.pronamespace = n.oid AND p.proname = 'admit' AND has_function_privilege('public', p.oid, 'EXECUTE'))
       ORDER BY 1 LIMIT 5`,
      [role],
    );
    if (others.length === 0) return 'No other role may lock without having been given the right.';
    return warning(
      `Everybody who may connect may lock, also ${others.map(({ name }) => identifier(name)).join(', ')}: such a role can hold up ` +
        'each key, end the handles of others, and mark their jobs as done.',
      onlyRole(way),
    );
  },

  async owners({ ask }) {
    const lacks = await ask<Rights>(lacking(OWNERS));
    if (lacks.length === 0) return 'The owners of guarded tables may run the guard.';
    const runs = 'Cascades of foreign keys and new partitions run the guard of';
    return lacks.map((lack) => refusal(lack, `${runs} ${lack.tables ?? 'partitions'} as the owner ${lack.role}, who`));
  },

  /** A role with this right can write fenced rows without a lock, whatever the guard's policy. */
  async override({ ask }) {
    const others = await ask<{ grantee: string | null }>(
      `SELECT r.rolname::text AS grantee
       FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
       CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
       LEFT JOIN pg_roles AS r ON r.oid = a.grantee
       WHERE p.oid = to_regprocedure('fenced_lock.override(text)') AND a.grantee <> p.proowner
         AND (r.oid IS NULL OR NOT pg_has_role(r.oid, n.nspowner, 'MEMBER'))
       ORDER BY 1`,
    );
    if (others.length === 0) return 'Kept for the owner of the schema.';
    return others.map(({ grantee }) => {
      const [who, from] = grantee === null ? ['Every role', 'PUBLIC'] : [`The role ${grantee}`, identifier(grantee)];
      return fault(
        `${who} may call override(), and so write fenced rows without a lock.`,
        `REVOKE EXECUTE ON FUNCTION fenced_lock.override(text) FROM ${from}`,
      );
    });
  },

  async timeouts({ database, role }) {
    const rows = await database.transaction('BEGIN READ ONLY', async (query) => {
      if (role !== undefined) await query(AS_ROLE, [role, SETTINGS]);
      const sql = 'SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])';
      return await query<{ name: string; setting: string }>(sql, [SETTINGS]);
    });
    const short = LIMITS.flatMap(({ setting, least, report, because }) => {
      const ms = Number(rows.find(({ name }) => name === setting)?.setting ?? 0);
      // 0 means no limit.
      if (ms === 0 || ms >= least) return [];
      return report(`${setting} is ${ms} ms: ${because}.`, `ALTER ROLE … SET ${setting} = '${least}ms' or more, or 0`);
    });
    return short.length > 0 ? short : 'None that is too short.';
  },
};

const SEQUENCE = 'AS bigint INCREMENT 1 CACHE 1 NO CYCLE, LOGGED';
/** No lock has drawn a token above this: at a million a second, it would take 285 years. */
const BEYOND = 2n ** 53n;
const BY_HAND = `${DOCS}operators.md#a-fence-that-no-lock-has-set`;

export const sequenceChecks: Checks<PostgresSubject> = {
  async sequence({ ask, database, fix }) {
    const [row] = await ask<{ is: string }>(
      `SELECT format('AS %s INCREMENT %s CACHE %s %s, %s', s.seqtypid::regtype, s.seqincrement, s.seqcache,
         CASE WHEN s.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END, CASE c.relpersistence WHEN 'p' THEN 'LOGGED' ELSE 'UNLOGGED' END
         ) AS is
       FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid WHERE c.oid = to_regclass('fenced_lock.token')`,
    );
    const { is = 'no sequence' } = row ?? {};
    if (is === SEQUENCE) return 'CACHE 1, NO CYCLE, by 1.';
    const logged = is.endsWith('UNLOGGED') ? '; ALTER SEQUENCE fenced_lock.token SET LOGGED' : '';
    const mend = `ALTER SEQUENCE fenced_lock.token AS bigint NO MAXVALUE INCREMENT 1 CACHE 1 NO CYCLE${logged}`;
    const must = `and must be ${SEQUENCE}`;
    if (!fix) {
      const message = `fenced_lock.token is ${is}, ${must}: tokens would end, or come out of order, or twice.`;
      return fault(message, `doctor --fix, or ${mend}`);
    }
    await database.query(mend);
    return `Repaired: fenced_lock.token was ${is}, ${must}.`;
  },

  async 'sequence position'(subject) {
    const { ask, database, fix } = subject;
    const fenced = fencedOf(subject);
    const columns = await ask<{ table: string; column: string }>(
      `SELECT t.name AS table, a.attname AS column FROM unnest($1::text[], $2::text[]) AS t(name, fence)
       JOIN pg_attribute AS a ON a.attrelid = to_regclass(t.name) AND a.attname = t.fence AND a.atttypid = 'bigint'::regtype`,
      [
        ['fenced_lock.admission', ...fenced.map(({ table }) => table)],
        ['token', ...fenced.map(({ fence }) => fence)],
      ],
    );
    const read = async (sql: string) => BigInt((await ask<{ token: string }>(sql))[0]?.token ?? 0);
    // Before the sequence is read: locks go on drawing tokens, and a token is drawn before it can be seen in a row.
    let [highest, where] = [0n, ''];
    for (const { table, column } of columns) {
      const token = await read(`SELECT max(${identifier(column)})::text AS token FROM ${table}`);
      if (token > highest) [highest, where] = [token, table];
    }
    const last = await read(
      'SELECT CASE WHEN is_called THEN last_value ELSE 0 END::text AS token FROM fenced_lock.token',
    );
    if (last >= BEYOND) {
      const message = `The sequence is at ${last}, which no lock has reached. When it ends, no lock can be taken.`;
      return fault(message, `Set it back: ${BY_HAND}`);
    }
    if (highest <= last) return `At ${last}, and no higher token is in use.`;
    const behind = `The sequence is at ${last}, and token ${highest} is in use in ${where}`;
    if (highest > BEYOND) {
      const message = `${behind}, which no lock has drawn: a lock that writes its row is refused.`;
      return fault(message, `Lower it: ${BY_HAND}`);
    }
    if (!fix) {
      return fault(
        `${behind}, as after a restore: new holders would be refused as stale.`,
        `doctor --fix. If it was set by hand: ${BY_HAND}`,
      );
    }
    await database.transaction('BEGIN', async (query) => {
      await query(`SET LOCAL lock_timeout = '5s'`);
      // It blocks every nextval until this commits. Otherwise a token that is drawn in between could be issued again.
      await query('ALTER SEQUENCE fenced_lock.token CACHE 1');
      await query(`SELECT setval('fenced_lock.token', greatest(last_value, $1::bigint)) FROM fenced_lock.token`, [
        highest.toString(),
      ]);
    });
    return `${behind}: set forward.`;
  },
};
