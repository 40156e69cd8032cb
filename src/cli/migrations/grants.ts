import { identifier } from './identifiers.js';

const names = String.raw`"(?:[^"]|"")+"(?:\s*,\s*"(?:[^"]|"")+")*`;
const GRANTED = new RegExp(
  String.raw`^(GRANT) USAGE ON SCHEMA fenced_lock TO (${names});|^REVOKE \w+ ON SCHEMA fenced_lock FROM (${names});`,
  'gm',
);

export const grantUsage = (roles: readonly string[]) =>
  `GRANT USAGE ON SCHEMA fenced_lock TO ${roles.map(identifier).join(', ')}`;
export const grantExecute = (roles: readonly string[], functions: readonly string[], between = ' ') =>
  `GRANT EXECUTE ON FUNCTION${between}${functions.join(`,${between}`)}${between}TO ${roles.map(identifier).join(', ')}`;

/** Lets only these roles lock. */
export function restrictTo(roles: readonly string[], functions: readonly string[]): string {
  return `-- Only these roles may lock. Each has to be there: if one is not, nothing of this migration is kept. Then create it and
--   npx prisma migrate resolve --rolled-back <this folder's name> && npx prisma migrate deploy
REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM PUBLIC;
${grantUsage(roles)};
${grantExecute(roles, functions, '\n    ')};
`;
}

/** The roles that may lock after all these scripts. */
export function rolesAfter(scripts: readonly string[]): string[] {
  const roles = new Set<string>();
  for (const [, granted, to = '', from = ''] of scripts.flatMap((sql) => [...sql.matchAll(GRANTED)])) {
    for (const [name] of (granted ? to : from).matchAll(/"(?:[^"]|"")+"/g)) {
      const role = name.slice(1, -1).replaceAll('""', '"');
      if (granted) roles.add(role);
      else roles.delete(role);
    }
  }
  return [...roles];
}
