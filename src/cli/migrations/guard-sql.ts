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

/** The statements that make the guard of a table, of its rows and of TRUNCATE; with the policy `none` they remove it. */
export function triggersOf(table: string, { column, policy }: Guard): string[] {
  if (policy === 'none') {
    return [GUARD, GUARD_TRUNCATE].map((name) => `DROP TRIGGER IF EXISTS ${name} ON ${table}`);
  }
  // OR REPLACE, so that they also change the policy.
  return [
    `CREATE OR REPLACE TRIGGER ${GUARD} BEFORE INSERT OR UPDATE OR DELETE ON ${table}
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard(${literal(column)}, ${literal(policy)})`,
    `CREATE OR REPLACE TRIGGER ${GUARD_TRUNCATE} BEFORE TRUNCATE ON ${table}
    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate(${literal(policy)})`,
  ];
}

/**
 * Makes the guards of existing tables, or removes them, and with them those of each partition and child, at any depth, with the rights
 * of the role that migrates. A child that is one of the `fenced` tables has a fence of its own, and is passed over with what is below it.
 */
export function guardFamilies(tables: readonly GuardedTable[], fenced: readonly Table[]): string[] {
  if (tables.length === 0) return [];
  const own = tables.flatMap(({ table, ...guard }) => triggersOf(tableName(table), guard)).map((sql) => `${sql};`);
  const values = tables.map(({ table, column, policy }) => {
    const ofDescendant = triggersOf('%s', { column: column.replaceAll('%', '%%'), policy }).map(literal);
    return `(${literal(tableName(table))}::pg_catalog.regclass::oid, ${ofDescendant.join(', ')})`;
  });
  const names = [...tables.map(({ table }) => table), ...fenced].map((table) => literal(tableName(table)));
  return [
    own.join('\n'),
    `-- A partition has the row trigger of its parent, and one of its own for TRUNCATE; a child by plain inheritance has two of its
-- own. After a partition or a child is made, npx fenced-lock doctor says what it lacks.
DO ${dollarQuoted(`
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
                SELECT FROM pg_catalog.unnest(ARRAY[${[...new Set(names)].join(', ')}]::pg_catalog.text[]) AS t(name)
                WHERE pg_catalog.to_regclass(t.name)::oid OPERATOR(pg_catalog.=) i.inhrelid)
        ), family(id, of_rows, of_truncate) AS (
            VALUES
                ${values.join(',\n                ')}
            UNION
            SELECT b.id, f.of_rows, f.of_truncate
            FROM family AS f JOIN below AS b ON b.parent OPERATOR(pg_catalog.=) f.id
        )
        SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.relkind AS kind,
            c.relispartition AS is_partition, f.of_rows, f.of_truncate
        FROM family AS f
        JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) f.id
        JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
        -- The tables themselves have their statements above.
        WHERE EXISTS (SELECT FROM below AS b WHERE b.id OPERATOR(pg_catalog.=) f.id)
    LOOP
        IF NOT descendant.is_partition THEN
            EXECUTE pg_catalog.format(descendant.of_rows, descendant.name);
        END IF;
        IF descendant.kind OPERATOR(pg_catalog.<>) 'f' THEN
            EXECUTE pg_catalog.format(descendant.of_truncate, descendant.name);
        END IF;
    END LOOP;
END
`)};`,
  ];
}
