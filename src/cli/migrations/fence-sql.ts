/** How the guard treats a writer without a token. `none`: no guard at all. */
export const POLICIES = ['allow', 'require', 'prove', 'none'] as const;
export type Policy = (typeof POLICIES)[number];

export interface Table {
  readonly name: string;
  readonly schema: string | undefined;
}

/** A table that gets a fence. */
export interface Fence {
  readonly table: Table;
  /** The fence's column; added where `add` says so. */
  readonly column: string;
  readonly add: boolean;
  /** `undefined`: its guard stays as it is; `none`: it is taken away. */
  readonly guard: Policy | undefined;
}

export const GUARD = 'zzz_fenced_lock_guard';
export const GUARD_TRUNCATE = 'zzz_fenced_lock_guard_truncate';

/** How long each statement may wait for its table, and with it everybody who comes after. */
const LOCK_TIMEOUT = '2s';

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
export const tableName = ({ schema, name }: Table) =>
  schema === undefined ? identifier(name) : `${identifier(schema)}.${identifier(name)}`;

const HEAD = `-- An ALTER TABLE waits until the table's readers have finished, and every later reader waits behind it. It therefore
-- gives up after this time, and nothing of this migration is kept. Then run it again at a quieter hour:
--   npx prisma migrate resolve --rolled-back <this folder's name> && npx prisma migrate deploy
SET LOCAL lock_timeout = '${LOCK_TIMEOUT}';
SET LOCAL statement_timeout = '1min';
`;

/** The migration that adds fences. A constant default: the rows are not rewritten, and need no backfill. */
export function addFences(fences: readonly Fence[]): string {
  const parts = fences.map(({ table, column, add, guard }) => {
    const name = tableName(table);
    const lines: string[] = [];
    if (add) lines.push(`ALTER TABLE ${name} ADD COLUMN ${identifier(column)} BIGINT NOT NULL DEFAULT 0;`);
    if (guard === 'none') {
      lines.push(...dropGuard(name));
    } else if (guard !== undefined) {
      // OR REPLACE: the same statement changes the policy of a guard that is there.
      lines.push(
        `CREATE OR REPLACE TRIGGER ${GUARD} BEFORE INSERT OR UPDATE OR DELETE ON ${name}`,
        `    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard(${literal(column)}, ${literal(guard)});`,
        `CREATE OR REPLACE TRIGGER ${GUARD_TRUNCATE} BEFORE TRUNCATE ON ${name}`,
        `    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate(${literal(guard)});`,
      );
    }
    return lines.join('\n');
  });
  return `${HEAD}\n${parts.join('\n\n')}\n`;
}

/** The migration that takes fences away. */
export function removeFences(fences: readonly { table: Table; column: string | undefined }[]): string {
  const parts = fences.map(({ table, column }) => {
    const name = tableName(table);
    const drop = dropGuard(name);
    if (column !== undefined) drop.push(`ALTER TABLE ${name} DROP COLUMN ${identifier(column)};`);
    return drop.join('\n');
  });
  return `${HEAD}\n${parts.join('\n\n')}\n`;
}

function dropGuard(name: string): string[] {
  return [GUARD_TRUNCATE, GUARD].map((trigger) => `DROP TRIGGER IF EXISTS ${trigger} ON ${name};`);
}
