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

/** Creates the guard on existing tables. `fenced`: other tables with a fence, which keep the guard that they have, or have none. */
export function createGuards(tables: readonly GuardedTable[], fenced: readonly Table[]): string[] {
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
  [...tables.map(({ table }) => table), ...fenced],
  [
    'CONTINUE WHEN descendant.is_fenced;',
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

/**
 * Removes the guard, if there is one.
 *
 * @param tables with their columns, if these are dropped, too.
 * @param fenced other tables with a fence, which keep their guard.
 */
export function dropGuards(
  tables: ReadonlyArray<{ readonly table: Table; readonly column?: string | undefined }>,
  fenced: readonly Table[],
): string[] {
  if (tables.length === 0) return [];
  const drop = (trigger: string, table: string) => `DROP TRIGGER IF EXISTS ${trigger} ON ${table}`;
  const own = tables.flatMap(({ table }) =>
    [GUARD_TRUNCATE, GUARD].map((trigger) => `${drop(trigger, tableName(table))};`),
  );
  return [
    own.join('\n'),
    forDescendants(
      tables.map(({ table, column = '' }) => [tableName(table), column, '']),
      fenced,
      [
        `IF descendant.is_fenced THEN
            IF descendant.would_lose_fence THEN
                RAISE EXCEPTION '% has the column "%" from %, and would lose it with the fence of that table',
                    descendant.name, descendant.fence, descendant.parent
                    USING HINT = pg_catalog.format('This gives it a column of its own: '
                        'ALTER TABLE %1$s NO INHERIT %2$s; ALTER TABLE %1$s INHERIT %2$s;', descendant.name, descendant.parent);
            END IF;
            CONTINUE;
        END IF;`,
        ...[GUARD_TRUNCATE, GUARD].map(
          (trigger) => `EXECUTE pg_catalog.format('${drop(trigger, '%s')}', descendant.name);`,
        ),
      ],
    ),
  ];
}

/**
 * Runs statements for each partition and child of the tables, at any depth, with the rights of the role that migrates. A child
 * that is one of the fenced tables is the last of its branch: it has a fence of its own. A partition has its parent's.
 */
function forDescendants(
  tables: ReadonlyArray<readonly [name: string, fence: string, policy: string]>,
  fenced: readonly Table[],
  work: string[],
): string {
  const values = tables.map(
    ([name, fence, policy]) => `(${literal(name)}::pg_catalog.regclass::oid, ${literal(fence)}, ${literal(policy)})`,
  );
  const names = [...new Set(fenced.map((table) => literal(tableName(table))))];
  return `DO ${dollarQuoted(`
DECLARE
    descendant record;
BEGIN
    FOR descendant IN
        WITH RECURSIVE below AS (
            SELECT i.inhrelid AS id, i.inhparent AS parent, NOT c.relispartition
                AND i.inhrelid OPERATOR(pg_catalog.=) ANY (f.ids) IS TRUE AS is_fenced
            FROM pg_catalog.pg_inherits AS i
            JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
            -- A table that is not there yet, or no longer, is NULL.
            CROSS JOIN (SELECT pg_catalog.array_agg(pg_catalog.to_regclass(t.name)::oid) AS ids
                FROM pg_catalog.unnest(ARRAY[${names.join(', ')}]::pg_catalog.text[]) AS t(name)) AS f
        ), family(id, parent, is_fenced, fence, policy) AS (
            SELECT b.id, b.parent, b.is_fenced, t.fence, t.policy
            FROM (VALUES
                ${values.join(',\n                ')}
            ) AS t(id, fence, policy)
            JOIN below AS b ON b.parent OPERATOR(pg_catalog.=) t.id
            UNION
            SELECT b.id, b.parent, b.is_fenced, f.fence, f.policy
            FROM family AS f JOIN below AS b ON b.parent OPERATOR(pg_catalog.=) f.id
            WHERE NOT f.is_fenced
        )
        SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.relkind AS kind,
            c.relispartition AS is_partition, f.parent::pg_catalog.regclass AS parent, f.is_fenced, f.fence, f.policy,
            EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid OPERATOR(pg_catalog.=) f.id
                AND a.attname OPERATOR(pg_catalog.=) f.fence AND NOT a.attislocal
                AND a.attinhcount OPERATOR(pg_catalog.=) 1) AS would_lose_fence
        FROM family AS f
        JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) f.id
        JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    LOOP
        ${work.join('\n        ')}
    END LOOP;
END
`)};`;
}
