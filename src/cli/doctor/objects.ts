import { versionOfComment } from '../migrations/packaged.js';
import { type Check, type Finding, fault, ok, warning } from './check.js';
import type { PostgresSubject } from './subject.js';

const INSTALL = 'npx fenced-lock init, then npx prisma migrate deploy';

const objects: Check<PostgresSubject> = {
  name: 'objects',
  essential: true,
  async look({ ask, objects }) {
    const rows = await ask<{ name: string }>(
      `SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname AS name FROM pg_class AS c
         WHERE c.relnamespace = to_regnamespace('fenced_lock')
       UNION ALL
       SELECT 'function ' || p.proname FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace('fenced_lock')`,
    );
    if (rows.length === 0) return fault('The schema fenced_lock is not in this database.', INSTALL);
    const there = new Set(rows.map(({ name }) => name));
    const missing = objects.names.filter((name) => !there.has(name));
    if (missing.length > 0) {
      return fault(
        `Missing in the schema fenced_lock: ${missing.join(', ')}.`,
        'npx fenced-lock upgrade, then npx prisma migrate deploy; if that finds nothing to do, restore them from the migration',
      );
    }
    return ok(`All ${objects.names.length} are there.`);
  },
};

const version: Check<PostgresSubject> = {
  name: 'objects version',
  async look({ ask, objects }) {
    const [row] = await ask<{ comment: string | null }>(
      `SELECT obj_description(to_regnamespace('fenced_lock'), 'pg_namespace') AS comment`,
    );
    const installed = versionOfComment(row?.comment);
    if (installed === objects.version) return ok(`Version ${installed}, as this package brings.`);
    if (installed !== undefined && installed > objects.version) {
      return warning(`Version ${installed} is newer than this package's ${objects.version}.`, 'Update the package.');
    }
    return fault(
      `Version ${installed ?? 'unknown'} is not this package's ${objects.version}.`,
      'npx fenced-lock upgrade, then npx prisma migrate deploy',
    );
  },
};

const epoch: Check<PostgresSubject> = {
  name: 'epoch',
  async look({ ask, database, fix }) {
    const [table] = await ask<{ persistence: string }>(
      `SELECT relpersistence::text AS persistence FROM pg_class WHERE oid = to_regclass('fenced_lock.epoch')`,
    );
    if (table?.persistence !== 'u') {
      return fault(
        'The table of the crash epoch is not UNLOGGED, so it would not show a crash, and a lost COMMIT may be taken for done.',
        'ALTER TABLE fenced_lock.epoch SET UNLOGGED',
      );
    }
    // By the function, because a role that may not read the table may call it.
    const [row] = await ask<{ epoch: string | null }>(
      `SELECT epoch::text FROM fenced_lock.evidence('', pg_snapshot_xmin(pg_current_snapshot())::text)`,
    );
    if (row?.epoch) return ok('A crash of the server would be noticed.');
    if (fix) {
      await database.query('SELECT fenced_lock.start_epoch()');
      return ok('An epoch was begun.');
    }
    return warning(
      'No epoch has begun since the server was set up or crashed.',
      'The next lock begins one, or doctor --fix.',
    );
  },
};

const rights: Check<PostgresSubject> = {
  name: 'rights',
  async look({ ask, role, objects }) {
    const rows = await ask<{ role: string; usage: boolean; refused: string[] }>(
      `SELECT r.role, has_schema_privilege(r.role, 'fenced_lock', 'USAGE') AS usage,
         ARRAY(SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace('fenced_lock')
           AND p.proname = ANY ($2::text[]) AND NOT has_function_privilege(r.role, p.oid, 'EXECUTE') ORDER BY 1) AS refused
       FROM (SELECT coalesce($1::text, current_user::text) AS role) AS r`,
      [role, objects.callable],
    );
    return rows.flatMap(({ role, usage, refused }): Finding[] => {
      const found: Finding[] = [];
      if (!usage) {
        found.push(
          fault(`The role ${role} may not use the schema fenced_lock.`, 'GRANT USAGE ON SCHEMA fenced_lock TO it'),
        );
      }
      if (refused.length > 0) {
        found.push(
          fault(
            `The role ${role} may not call ${refused.join(', ')}.`,
            'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fenced_lock TO it',
          ),
        );
      }
      return found.length > 0 ? found : [ok(`The role ${role} may use them.`)];
    });
  },
};

export const objectChecks = [objects, version, epoch, rights];

/** What a script makes in our schema, such as `function admit`. */
export function objectsIn(sql: string): string[] {
  const made = sql.matchAll(/^CREATE (?:OR REPLACE )?(?:UNLOGGED )?(TABLE|SEQUENCE|FUNCTION) fenced_lock\.(\w+)/gm);
  return [...new Set([...made].map(([, kind = '', name]) => `${kind.toLowerCase()} ${name}`))];
}

/** The functions that a role of the application has to be able to call: all but those kept for the owner. */
export function callableIn(sql: string): string[] {
  const kept = [...sql.matchAll(/^REVOKE EXECUTE ON FUNCTION fenced_lock\.(\w+)/gm)].map((match) => match[1]);
  return objectsIn(sql)
    .filter((object) => object.startsWith('function '))
    .map((object) => object.slice('function '.length))
    .filter((name) => !kept.includes(name));
}
