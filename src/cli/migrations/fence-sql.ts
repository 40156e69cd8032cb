import { createGuards, dropGuards } from './guard-sql.js';
import { identifier, type Table, tableName } from './identifiers.js';

/** How the guard treats a writer without a token. `none`: no guard. */
export const POLICIES = ['allow', 'require', 'prove', 'none'] as const;
export type Policy = (typeof POLICIES)[number];

/** A table that gets a fence. */
export interface FencedTable {
  readonly table: Table;
  /** The fence's column. `add`: it is made where it is not there, as it is after `prisma db push`. */
  readonly column: string;
  readonly add: boolean;
  /** `undefined`: the guard is not changed. `none`: it is removed. */
  readonly guard: Policy | undefined;
}

/** Later readers wait behind a statement that waits for its table. */
const HEAD = `-- An ALTER TABLE waits until the table's readers have finished, and every later reader waits behind it. It therefore
-- gives up after this time, and nothing of this migration is kept. Then run it again at a quieter hour:
--   npx prisma migrate resolve --rolled-back <this folder's name> && npx prisma migrate deploy
SET LOCAL lock_timeout = '2s';
SET LOCAL statement_timeout = '1min';
`;

/**
 * The migration that adds fences. `fenced` are the tables of other models with a fence, which stay as they are. The default is
 * a constant, so Postgres does not rewrite the rows, and they need no backfill.
 */
export function addFences(fences: readonly FencedTable[], fenced: readonly Table[]): string {
  const columns = fences
    .filter(({ add }) => add)
    .map(
      ({ table, column }) =>
        `ALTER TABLE ${tableName(table)} ADD COLUMN IF NOT EXISTS ${identifier(column)} BIGINT NOT NULL DEFAULT 0;`,
    );
  const guarded = fences.flatMap(({ table, column, guard }) =>
    guard === undefined || guard === 'none' ? [] : { table, column, policy: guard },
  );
  const bare = fences.filter(({ guard }) => guard === 'none').map(({ table }) => table);
  return script([...columns, ...createGuards(guarded, fenced), ...dropGuards(bare, fenced)]);
}

/** The migration that removes fences. `fenced` are the tables of other models with a fence, which stay as they are. */
export function removeFences(
  fences: readonly { table: Table; column: string | undefined }[],
  fenced: readonly Table[],
): string {
  const guards = dropGuards(
    fences.map(({ table }) => table),
    fenced,
  );
  const columns = fences.flatMap(({ table, column }) =>
    column === undefined ? [] : `ALTER TABLE ${tableName(table)} DROP COLUMN ${identifier(column)};`,
  );
  return script([...guards, ...columns]);
}

const script = (parts: readonly string[]) => `${[HEAD, ...parts].join('\n')}\n`;
