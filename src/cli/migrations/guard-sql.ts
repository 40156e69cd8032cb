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

/** The statements that make the guard of a table: of its rows, and of TRUNCATE. OR REPLACE, so that they also change its policy. */
export const triggersOf = (table: string, { column, policy }: Guard) =>
  [
    `CREATE OR REPLACE TRIGGER ${GUARD} BEFORE INSERT OR UPDATE OR DELETE ON ${table}
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard(${literal(column)}, ${literal(policy)})`,
    `CREATE OR REPLACE TRIGGER ${GUARD_TRUNCATE} BEFORE TRUNCATE ON ${table}
    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate(${literal(policy)})`,
  ] as const;

/** Creates the guard on existing tables. `fenced`: other tables with a fence, which keep the guard that they have, or have none. */
export function createGuards(tables: readonly GuardedTable[], fenced: readonly Table[]): string[] {
  if (tables.length === 0) return [];
  const own = tables.flatMap(({ table, ...guard }) => triggersOf(tableName(table), guard).map((sql) => `${sql};`));
  return [
    own.join('\n'),
    `-- A partition gets the row trigger from its parent, also one that is made later, and not the one for TRUNCATE; a child by
-- plain inheritance gets neither. After a partition or a child is made, npx fenced-lock doctor says what it lacks.
${forDescendants(
  tables,
  [...tables.map(({ table }) => table), ...fenced],
  `IF NOT descendant.is_partition THEN
            EXECUTE pg_catalog.format('CREATE OR REPLACE TRIGGER ${GUARD} BEFORE INSERT OR UPDATE OR DELETE ON %s'
                ' FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard(%L, %L)',
                descendant.name, descendant.fence, descendant.policy);
        END IF;
        IF descendant.kind OPERATOR(pg_catalog.<>) 'f' THEN
            EXECUTE pg_catalog.format('CREATE OR REPLACE TRIGGER ${GUARD_TRUNCATE} BEFORE TRUNCATE ON %s'
                ' FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate(%L)',
                descendant.name, descendant.policy);
        END IF;`,
)}`,
  ];
}

/** Removes the guard, if there is one. `fenced`: other tables with a fence, which keep their guard. */
export function dropGuards(tables: readonly Table[], fenced: readonly Table[]): string[] {
  if (tables.length === 0) return [];
  const drop = (trigger: string, table: string) => `DROP TRIGGER IF EXISTS ${trigger} ON ${table}`;
  const triggers = [GUARD_TRUNCATE, GUARD];
  return [
    tables.flatMap((table) => triggers.map((trigger) => `${drop(trigger, tableName(table))};`)).join('\n'),
    forDescendants(
      tables.map((table) => ({ table, column: '', policy: '' })),
      fenced,
      triggers
        .map((trigger) => `EXECUTE pg_catalog.format('${drop(trigger, '%s')}', descendant.name);`)
        .join('\n        '),
    ),
  ];
}

/**
 * Runs statements for each partition and child of the tables, at any depth, with the rights of the role that migrates. A child
 * that is one of the fenced tables has a fence of its own, and is passed over with what is below it. A partition has its
 * parent's.
 */
function forDescendants(tables: readonly GuardedTable[], fenced: readonly Table[], work: string): string {
  const values = tables.map(
    ({ table, column, policy }) =>
      `(${literal(tableName(table))}::pg_catalog.regclass::oid, ${literal(column)}, ${literal(policy)})`,
  );
  const names = [...new Set(fenced.map((table) => literal(tableName(table))))];
  return `DO ${dollarQuoted(`
DECLARE
    descendant record;
BEGIN
    FOR descendant IN
        WITH RECURSIVE below AS (
            SELECT i.inhrelid AS id, i.inhparent AS parent
            FROM pg_catalog.pg_inherits AS i
            JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
            -- A table that is not there yet, or no longer, is NULL.
            WHERE c.relispartition OR NOT EXISTS (
                SELECT FROM pg_catalog.unnest(ARRAY[${names.join(', ')}]::pg_catalog.text[]) AS t(name)
                WHERE pg_catalog.to_regclass(t.name)::oid OPERATOR(pg_catalog.=) i.inhrelid)
        ), family(id, fence, policy) AS (
            VALUES
                ${values.join(',\n                ')}
            UNION
            SELECT b.id, f.fence, f.policy
            FROM family AS f JOIN below AS b ON b.parent OPERATOR(pg_catalog.=) f.id
        )
        SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.relkind AS kind,
            c.relispartition AS is_partition, f.fence, f.policy
        FROM family AS f
        JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) f.id
        JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
        -- The tables themselves have their statements above.
        WHERE EXISTS (SELECT FROM below AS b WHERE b.id OPERATOR(pg_catalog.=) f.id)
    LOOP
        ${work}
    END LOOP;
END
`)};`;
}
