import { GUARD } from './guard-sql.js';
import { dollarQuoted, identifier, literal } from './identifiers.js';

/** A grant of the function that begins a turn, or its end. */
const LOCKING = new RegExp(
  String.raw`^(GRANT|REVOKE) \w+ ON (?:ALL FUNCTIONS IN SCHEMA fenced_lock|FUNCTION\s[^;]*?\bfenced_lock\.admit\([^;]*?)` +
    String.raw`\s+(?:TO|FROM)\s+("(?:[^"]|"")+"(?:\s*,\s*"(?:[^"]|"")+")*)\s*;`,
  'gm',
);

export const grantUsage = (roles: readonly string[]) =>
  `GRANT USAGE ON SCHEMA fenced_lock TO ${roles.map(identifier).join(', ')}`;
export const grantExecute = (roles: readonly string[], functions: readonly string[], between = ' ') =>
  `GRANT EXECUTE ON FUNCTION${between}${functions.join(`,${between}`)}${between}TO ${roles.map(identifier).join(', ')}`;

/** Lets only these roles lock. */
export function restrictTo(roles: readonly string[], functions: readonly string[]): string {
  return `-- Only these roles may lock. Each has to be there: if one is not, nothing of this migration is kept. Then create it and run
-- this again. With Prisma:
--   npx prisma migrate resolve --rolled-back <this folder's name> && npx prisma migrate deploy
REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM PUBLIC;
${grantUsage(roles)};
${grantExecute(roles, functions, '\n    ')};
${grantToOwners()}`;
}

/** What the guard calls as the role that writes. docs/rights.md names the same. */
const CALLED_BY_GUARD = [
  'check_writer',
  'detail',
  'fence_without_token',
  'is_admitted',
  'is_overridden',
  'refuse_stale',
];
/** What the triggers of the guard call. Who makes or attaches a partition creates them there. */
const CALLED_BY_TRIGGERS = ['guard', 'guard_truncate'];
const names = (functions: readonly string[]) => `ARRAY[${functions.map(literal).join(', ')}]`;

/**
 * The owners of guarded tables, but for who may act as the owner of fenced_lock, and the functions that the guard calls as them. These
 * are of the version that is there. The owners are those of the database: schema and migrations do not name them.
 */
export const OWNERS = `
        SELECT o.role, o.keeper, o.tables, ARRAY(
            SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc AS p
            WHERE p.pronamespace OPERATOR(pg_catalog.=) o.home AND (
                p.proname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (${names(CALLED_BY_GUARD)})
                OR o.partitions AND p.proname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (${names(CALLED_BY_TRIGGERS)}))
        ) AS functions
        FROM (
            SELECT pg_catalog.pg_get_userbyid(c.relowner)::pg_catalog.text AS role, n.oid AS home, n.nspowner AS keeper,
                pg_catalog.string_agg(c.oid::pg_catalog.regclass::pg_catalog.text, ', ')
                    FILTER (WHERE NOT c.relispartition) AS tables,
                pg_catalog.bool_or(c.relkind OPERATOR(pg_catalog.=) 'p') AS partitions
            FROM pg_catalog.pg_namespace AS n
            JOIN pg_catalog.pg_trigger AS t ON t.tgname::pg_catalog.text OPERATOR(pg_catalog.=) ${literal(GUARD)}
            JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
            WHERE n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) 'fenced_lock'
                AND NOT pg_catalog.pg_has_role(c.relowner, n.nspowner, 'USAGE')
            GROUP BY c.relowner, n.oid, n.nspowner
        ) AS o`;

/** Lets the owners of guarded tables run the guard. What the migrating role may not grant is in docs/rights.md. */
export function grantToOwners(): string {
  return `-- The action of a foreign key, such as a cascade, runs the guard of a table as the owner of the table, and a new partition gets
-- the guard from the owner who makes it. Where another role owns fenced_lock, that owner needs these rights.
DO ${dollarQuoted(`
DECLARE
    granted record;
BEGIN
    FOR granted IN${OWNERS}
        WHERE pg_catalog.pg_has_role(o.keeper, 'USAGE')
    LOOP
        EXECUTE pg_catalog.format('GRANT USAGE ON SCHEMA fenced_lock TO %I', granted.role);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %I',
            pg_catalog.array_to_string(granted.functions, ', '), granted.role);
    END LOOP;
END
`)};
`;
}

/** The roles that may lock after all these scripts. */
export function rolesAfter(scripts: readonly string[]): string[] {
  const roles = new Set<string>();
  for (const [, verb, named = ''] of scripts.flatMap((sql) => [...sql.matchAll(LOCKING)])) {
    for (const [name] of named.matchAll(/"(?:[^"]|"")+"/g)) {
      const role = name.slice(1, -1).replaceAll('""', '"');
      if (verb === 'GRANT') roles.add(role);
      else roles.delete(role);
    }
  }
  return [...roles];
}
