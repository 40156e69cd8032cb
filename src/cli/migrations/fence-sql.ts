import { guardFamilies } from './guard-sql.js';
import { identifier, type Table, tableName } from './identifiers.js';

/** How the guard treats a writer without a token. `none`: no guard. */
export const POLICIES = ['allow', 'require', 'prove', 'none'] as const;
export type Policy = (typeof POLICIES)[number];

/** What is changed of a table. */
export interface FencedTable {
  readonly table: Table;
  /** The fence's column. */
  readonly column: string;
  /** Whether the column is made, where it is not there, as it is after `prisma db push`; or removed. */
  readonly alter: 'ADD' | 'DROP' | undefined;
  /** `undefined`: the guard is not changed. `none`: it is removed. */
  readonly guard: Policy | undefined;
}

/** Later readers wait behind a statement that waits for its table. */
const HEAD = `-- An ALTER TABLE waits until the table's readers have finished, and every later reader waits behind it. It therefore
-- gives up after this time, and nothing of this migration is kept. Then run it again at a quieter hour. With Prisma:
--   npx prisma migrate resolve --rolled-back <this folder's name> && npx prisma migrate deploy
SET LOCAL lock_timeout = '2s';
SET LOCAL statement_timeout = '1min';
`;

/**
 * The migration that adds or removes fences. `fenced` are the tables of other models with a fence, which stay as they are. The
 * default is a constant, so Postgres does not rewrite the rows, and they need no backfill.
 */
export function fenceScript(changed: readonly FencedTable[], fenced: readonly Table[]): string {
  const guards = changed.flatMap(({ table, column, guard }) =>
    guard === undefined ? [] : { table, column, policy: guard },
  );
  const columns = (wanted: 'ADD' | 'DROP', statement: (column: string) => string) =>
    changed
      .filter(({ alter }) => alter === wanted)
      .map(({ table, column }) => `ALTER TABLE ${tableName(table)} ${statement(identifier(column))};`);
  const parts = [
    HEAD,
    ...columns('ADD', (column) => `ADD COLUMN IF NOT EXISTS ${column} BIGINT NOT NULL DEFAULT 0`),
    ...guardFamilies(guards, fenced),
    ...columns('DROP', (column) => `DROP COLUMN ${column}`),
  ];
  return `${parts.join('\n')}\n`;
}
