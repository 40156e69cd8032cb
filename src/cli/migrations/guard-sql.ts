import { dollarQuoted, literal, type Table, tableName } from './identifiers.js';

export const GUARD = 'zzz_fenced_lock_guard';
export const GUARD_TRUNCATE = 'zzz_fenced_lock_guard_truncate';

/** The column that a guard checks, and its policy for writers without a token. */
export interface Guard {
  readonly column: string;
  readonly policy: string;
}

export interface GuardedTable extends Guard {
  readonly table: Table;
}

/** OR REPLACE, so that the same statement also changes the policy of an existing guard. */
export const rowTrigger = (table: string, { column, policy }: Guard) =>
  `CREATE OR REPLACE TRIGGER ${GUARD} BEFORE INSERT OR UPDATE OR DELETE ON ${table}
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard(${literal(column)}, ${literal(policy)})`;
export const truncateTrigger = (table: string, { policy }: Pick<Guard, 'policy'>) =>
  `CREATE OR REPLACE TRIGGER ${GUARD_TRUNCATE} BEFORE TRUNCATE ON ${table}
    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate(${literal(policy)})`;

/** Creates the guard on existing tables. */
export function createGuards(tables: readonly GuardedTable[]): string[] {
  if (tables.length === 0) return [];
  const own = tables.flatMap((guarded) => {
    const name = tableName(guarded.table);
    return [`${rowTrigger(name, guarded)};`, `${truncateTrigger(name, guarded)};`];
  });
  return [
    own.join('\n'),
    `-- A partition gets the row trigger from its parent, also one that is made later, and not the one for TRUNCATE; a child by
-- plain inheritance gets neither. After a partition or a child is made, npx fenced-lock doctor says what it lacks.
${forDescendants(
  tables.map(({ table, column, policy }) => [tableName(table), column, policy]),
  [
    `IF NOT descendant.is_partition THEN
            EXECUTE pg_catalog.format('CREATE OR REPLACE TRIGGER ${GUARD} BEFORE INSERT OR UPDATE OR DELETE ON %s'
                ' FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard(%L, %L)',
                descendant.name, descendant.fence, descendant.policy);
        END IF;`,
    `IF descendant.kind OPERATOR(pg_catalog.<>) 'f' THEN
            EXECUTE pg_catalog.format('CREATE OR REPLACE TRIGGER ${GUARD_TRUNCATE} BEFORE TRUNCATE ON %s'
                ' FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate(%L)',
                descendant.name, descendant.policy);
        END IF;`,
  ],
)}`,
  ];
}

/** Removes the guard, if there is one. */
export function dropGuards(tables: readonly Table[]): string[] {
  if (tables.length === 0) return [];
  const drop = (trigger: string, table: string) => `DROP TRIGGER IF EXISTS ${trigger} ON ${table}`;
  const own = tables.flatMap((table) =>
    [GUARD_TRUNCATE, GUARD].map((trigger) => `${drop(trigger, tableName(table))};`),
  );
  return [
    own.join('\n'),
    forDescendants(
      tables.map((table) => [tableName(table), '', '']),
      [GUARD_TRUNCATE, GUARD].map((trigger) => `EXECUTE pg_catalog.format('${drop(trigger, '%s')}', descendant.name);`),
    ),
  ];
}

/**
 * Runs statements for each partition and child of the tables, at any depth, with the rights of the role that migrates.
 */
function forDescendants(
  tables: ReadonlyArray<readonly [name: string, fence: string, policy: string]>,
  work: string[],
): string {
  const values = tables.map(
    ([name, fence, policy]) => `(${literal(name)}::pg_catalog.regclass::oid, ${literal(fence)}, ${literal(policy)})`,
  );
  return `DO ${dollarQuoted(`
DECLARE
    descendant record;
BEGIN
    FOR descendant IN
        WITH RECURSIVE family(id, fence, policy) AS (
            SELECT i.inhrelid, t.fence, t.policy
            FROM (VALUES
                ${values.join(',\n                ')}
            ) AS t(id, fence, policy)
            JOIN pg_catalog.pg_inherits AS i ON i.inhparent OPERATOR(pg_catalog.=) t.id
            UNION
            SELECT i.inhrelid, f.fence, f.policy
            FROM family AS f JOIN pg_catalog.pg_inherits AS i ON i.inhparent OPERATOR(pg_catalog.=) f.id
        )
        SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.relkind AS kind,
            c.relispartition AS is_partition, f.fence, f.policy
        FROM family AS f
        JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) f.id
        JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    LOOP
        ${work.join('\n        ')}
    END LOOP;
END
`)};`;
}
