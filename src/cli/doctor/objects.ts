import { CALLED_BY_TRIGGERS, grantExecute, grantUsage } from '../migrations/grants.js';
import { GUARD } from '../migrations/guard-sql.js';
import { identifier } from '../migrations/identifiers.js';
import { versionOfComment } from '../migrations/packaged.js';
import { onlyRole, PUSHED } from '../project/remedies.js';
import { type Check, type Finding, fault, ok, warning } from './check.js';
import type { PostgresSubject } from './subject.js';

/** The script may be applied again, even if Prisma's history says that it was applied, for example after a restore. */
const install = ({ migrates, objects: { migration } }: PostgresSubject) => {
  if (!migrates) return PUSHED;
  return migration === undefined
    ? 'npx fenced-lock init, then npx prisma migrate deploy'
    : `npx prisma migrate deploy; if nothing is left to deploy: npx prisma db execute --file ${migration}`;
};

const objects: Check<PostgresSubject> = {
  name: 'objects',
  essential: true,
  async look(subject) {
    const { ask, objects } = subject;
    const rows = await ask<{ name: string }>(
      `SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname AS name FROM pg_class AS c
         WHERE c.relnamespace = to_regnamespace('fenced_lock')
       UNION ALL
       SELECT 'column ' || c.relname || '.' || a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
         WHERE c.relnamespace = to_regnamespace('fenced_lock') AND a.attnum > 0 AND NOT a.attisdropped
       UNION ALL
       SELECT 'function ' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')' FROM pg_proc AS p
         WHERE p.pronamespace = to_regnamespace('fenced_lock')`,
    );
    if (rows.length === 0) {
      // A project that has just begun has no migrations either.
      const instead = subject.migrates ? '' : '; to begin with migrations instead: npx fenced-lock init';
      return fault('The schema fenced_lock is not in this database.', `${install(subject)}${instead}`);
    }
    // The next check says what to do about another version.
    if ((await installedVersion(ask)) !== objects.version) return ok('Not compared: they are of another version.');
    const there = new Set(rows.map(({ name }) => name));
    const missing = objects.names.filter((name) => !there.has(name));
    if (missing.length > 0) {
      return fault(`Missing in the schema fenced_lock: ${missing.join(', ')}.`, install(subject));
    }
    return ok('All are there.');
  },
};

async function installedVersion(ask: PostgresSubject['ask']): Promise<number | undefined> {
  const [row] = await ask<{ comment: string | null }>(
    `SELECT obj_description(to_regnamespace('fenced_lock'), 'pg_namespace') AS comment`,
  );
  return versionOfComment(row?.comment);
}

const version: Check<PostgresSubject> = {
  name: 'objects version',
  essential: true,
  async look({ ask, migrates, objects }) {
    const installed = await installedVersion(ask);
    if (installed === objects.version) return ok(`Version ${installed}, as this package brings.`);
    if (installed !== undefined && installed > objects.version) {
      return warning(`Version ${installed} is newer than this package's ${objects.version}.`, 'Update the package.');
    }
    return fault(
      `Version ${installed ?? 'unknown'} is not this package's ${objects.version}.`,
      migrates ? 'npx fenced-lock upgrade, then npx prisma migrate deploy' : PUSHED,
    );
  },
};

const epoch: Check<PostgresSubject> = {
  name: 'epoch',
  async look({ ask, database, fix }) {
    const [server] = await ask<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby');
    // It refuses to read the table. The check `writable` finds the standby.
    if (server?.standby) return ok('Only the primary has one.');
    const [table] = await ask<{ persistence: string }>(
      `SELECT relpersistence::text AS persistence FROM pg_class WHERE oid = to_regclass('fenced_lock.epoch')`,
    );
    if (table?.persistence !== 'u') {
      return fault(
        'The table of the crash epoch is not UNLOGGED, so it would not show a crash, and a lost COMMIT may be taken for done.',
        'ALTER TABLE fenced_lock.epoch SET UNLOGGED',
      );
    }
    // Read by the function: a role without rights on the table may call it.
    const [row] = await ask<{ epoch: string | null }>(
      `SELECT epoch::text FROM fenced_lock.evidence('', pg_snapshot_xmin(pg_current_snapshot())::text)`,
    );
    if (row?.epoch) return ok('A crash of the server would be detected.');
    if (fix) {
      await database.query('SELECT fenced_lock.start_epoch()');
      return ok('An epoch was begun.');
    }
    if (await isUnused(ask)) return ok('No lock has been taken yet; the first one begins the crash epoch.');
    return warning(
      'No epoch has begun since the server was set up or crashed.',
      'The next lock begins one, or doctor --fix.',
    );
  },
};

/** Whether no token was ever drawn; `false` if the role may not see that. */
async function isUnused(ask: PostgresSubject['ask']): Promise<boolean> {
  const [row] = await ask<{ unused: boolean }>(
    `SELECT CASE WHEN has_sequence_privilege(s.id, 'USAGE, SELECT') THEN pg_sequence_last_value(s.id) IS NULL
       ELSE false END AS unused
     FROM (SELECT to_regclass('fenced_lock.token') AS id) AS s`,
  );
  return row?.unused === true;
}

const rights: Check<PostgresSubject> = {
  name: 'rights',
  async look({ ask, role, objects }) {
    const { forApplications } = objects;
    const rows = await ask<{ role: string; usage: boolean; refused: string[] }>(
      // Without USAGE, the connected role cannot look the functions up, and cannot call any.
      `SELECT r.role, r.usage,
         CASE WHEN r.usage OR r.role <> current_user THEN
           ARRAY(SELECT p.proname::text FROM unnest($2::text[]) AS needed(signature)
             JOIN pg_proc AS p ON p.oid = to_regprocedure(needed.signature)
             WHERE NOT has_function_privilege(r.role, p.oid, 'EXECUTE') ORDER BY 1)
         ELSE '{}' END AS refused
       FROM (SELECT n.role, has_schema_privilege(n.role, 'fenced_lock', 'USAGE') AS usage
         FROM (SELECT coalesce($1::text, current_user::text) AS role) AS n) AS r`,
      [role, forApplications],
    );
    return rows.flatMap(({ role, usage, refused }): Finding[] => {
      const found: Finding[] = [];
      if (!usage) {
        found.push(fault(`The role ${role} may not use the schema fenced_lock.`, grantUsage([role])));
      }
      if (refused.length > 0) {
        found.push(
          fault(`The role ${role} may not call ${refused.join(', ')}.`, grantExecute([role], forApplications)),
        );
      }
      return found.length > 0 ? found : [ok(`The role ${role} may use them.`)];
    });
  },
};

/** `admit` for `fenced_lock.admit(text[], …)`. */
const bareName = (signature: string) => signature.replace(/^fenced_lock\.|\(.*$/g, '');

/**
 * The action of a foreign key runs the guard of the table as the table's owner. Of the guard's functions, those that are
 * called by one without rights of its own run as this role, too; not override(), which only a hint names. Who makes or attaches
 * a partition creates its guard, and needs the right to call the functions of the triggers.
 */
const OWNERS = `
WITH RECURSIVE ours AS (
  SELECT p.* FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'fenced_lock'
), called(id) AS (
  SELECT p.oid FROM ours AS p WHERE p.proname = 'guard'
  UNION
  SELECT p.oid FROM called AS c JOIN ours AS caller ON caller.oid = c.id AND NOT caller.prosecdef
  JOIN ours AS p ON position('fenced_lock.' || p.proname || '(' IN caller.prosrc) > 0
), owners AS (
  SELECT c.relowner AS id, k.partitions, string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid::regclass::text) AS tables
  FROM pg_class AS c CROSS JOIN (VALUES (false), (true)) AS k(partitions)
  WHERE EXISTS (SELECT FROM pg_trigger AS t JOIN ours AS p ON p.oid = t.tgfoid
      WHERE t.tgrelid = c.oid AND t.tgname = $1 AND p.proname = 'guard')
    AND CASE WHEN k.partitions THEN c.relkind = 'p'
      ELSE EXISTS (SELECT FROM pg_constraint AS f WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.conparentid = 0
        AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))) END
  GROUP BY c.relowner, k.partitions
)
SELECT pg_get_userbyid(o.id)::text AS owner, o.partitions, o.tables,
  has_schema_privilege(o.id, 'fenced_lock', 'USAGE') AS usage,
  ARRAY(SELECT p.oid::regprocedure::text FROM ours AS p
    WHERE CASE WHEN o.partitions THEN p.proname = ANY ($3::text[])
        ELSE p.proname = ANY ($2::text[]) AND p.oid IN (SELECT c.id FROM called AS c) END
      AND NOT has_function_privilege(o.id, p.oid, 'EXECUTE') ORDER BY 1) AS refused
FROM owners AS o ORDER BY 1, 2`;

const owners: Check<PostgresSubject> = {
  name: 'owners',
  async look({ ask, objects }) {
    const rows = await ask<{ owner: string; partitions: boolean; tables: string; usage: boolean; refused: string[] }>(
      OWNERS,
      [GUARD, objects.forApplications.map(bareName), CALLED_BY_TRIGGERS],
    );
    const found = rows.flatMap(({ owner, partitions, tables, usage, refused }): Finding[] => {
      const lacks = [
        ...(usage ? [] : ['use the schema fenced_lock']),
        ...(refused.length > 0 ? [`call ${refused.map(bareName).join(', ')}`] : []),
      ];
      if (lacks.length === 0) return [];
      const grants = [
        ...(usage ? [] : [grantUsage([owner])]),
        ...(refused.length > 0 ? [grantExecute([owner], refused)] : []),
      ];
      const what = partitions
        ? `New partitions of ${tables} get its guard, and are refused to the owner ${owner}`
        : `Actions of foreign keys, such as a cascade, run the guard of ${tables} as the owner ${owner}`;
      return [fault(`${what}, who may not ${lacks.join(', and may not ')}.`, grants.join('; '))];
    });
    return found.length > 0 ? found : [ok('The owners of guarded tables may run the guard.')];
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

export const objectChecks = [objects, version, epoch, rights, everybody, owners, override];
