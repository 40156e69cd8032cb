import { readFileSync } from 'node:fs';
import * as texts from '../../src/database/sql.js';
import type { Role } from './role-database.js';

const MIGRATION = readFileSync(
  new URL('../../prisma/migrations/20261101000000_fenced_lock/migration.sql', import.meta.url),
  'utf8',
);

/** The types that our statements and functions deal with, by the names that are looked for in a search_path. */
const OPERANDS = [
  ...['text', 'uuid', 'jsonb', 'oid', 'regclass', 'regproc', 'name', 'xid', 'xid8', 'timestamptz', 'bytea', 'bool'],
  ...['int2', 'int4', 'int8', 'float8', 'numeric', 'interval', 'regrole', 'regnamespace'],
];
const COMPARISONS = ['=', '<>', '<', '>', '<=', '>=', '~', '~~'];
const OPERATORS = [...COMPARISONS, '+', '-', '/', '*', '||', '->', '->>'];

/** Every word that could be a function's name there. */
const FUNCTIONS = [MIGRATION, ...Object.values(texts)].flatMap((sql) => sql.match(/[a-z_0-9]+(?=\()/g) ?? []);

const array = (words: readonly string[]) => `ARRAY[${[...new Set(words)].map((word) => `'${word}'`)}]`;

/**
 * Everything that a name of ours could be mistaken for, put by `planter` into a schema. What of it runs as somebody else
 * leaves that role's id in a sequence, which no ROLLBACK takes back; `victims` reads it.
 */
export function plant(schema: string, planter: Role): string {
  return `
    CREATE SEQUENCE ${schema}.ran_as;
    GRANT ALL ON SEQUENCE ${schema}.ran_as TO PUBLIC;
    CREATE FUNCTION ${schema}.ran() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
    BEGIN
      IF current_user <> '${planter}' THEN
        PERFORM setval('${schema}.ran_as', (SELECT oid::bigint FROM pg_roles WHERE rolname = current_user));
      END IF;
    END $$;
    CREATE FUNCTION ${schema}.forged(state pg_catalog.int8, pg_catalog.anyelement) RETURNS pg_catalog.int8
      LANGUAGE plpgsql AS $$ BEGIN PERFORM ${schema}.ran(); RETURN 0; END $$;
    DO $plant$
    DECLARE
      op pg_catalog.text; l pg_catalog.text; r pg_catalog.text; n pg_catalog.int4 := 0; f record;
      is_comparison pg_catalog.bool;
    BEGIN
      PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true);
      FOREACH op IN ARRAY ${array(OPERATORS)} LOOP
        is_comparison := op = ANY (${array(COMPARISONS)});
        FOREACH l IN ARRAY ${array(OPERANDS)} LOOP
          FOREACH r IN ARRAY ${array(OPERANDS)} LOOP
            n := n + 1;
            EXECUTE format('CREATE FUNCTION ${schema}.op_%s(pg_catalog.%I, pg_catalog.%I) RETURNS pg_catalog.%I
              LANGUAGE plpgsql AS ''BEGIN PERFORM ${schema}.ran(); RETURN %s; END''', n, l, r,
              CASE WHEN is_comparison THEN 'bool' ELSE l END, CASE WHEN is_comparison THEN 'true' ELSE '$1' END);
            EXECUTE format('CREATE OPERATOR ${schema}.%s (FUNCTION = ${schema}.op_%s, LEFTARG = pg_catalog.%I,
              RIGHTARG = pg_catalog.%I)', op, n, l, r);
          END LOOP;
        END LOOP;
      END LOOP;
      FOR f IN
        SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS args, p.proretset,
          format_type(p.prorettype, NULL) AS returns
        FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
          AND p.proname = ANY (${array(FUNCTIONS)})
      LOOP
        BEGIN
          EXECUTE format('CREATE FUNCTION ${schema}.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS
            ''BEGIN PERFORM ${schema}.ran(); RETURN%s; END''', f.proname, f.args, CASE WHEN f.proretset THEN 'SETOF ' END,
            f.returns, CASE WHEN NOT f.proretset THEN ' NULL' END);
        EXCEPTION WHEN OTHERS THEN
          -- It has a type that PL/pgSQL does not take.
        END;
      END LOOP;
      -- Functions of any number of any types cannot be planted as such, and a closer match is found before them.
      FOREACH l IN ARRAY ARRAY['format(text, text)', 'jsonb_build_object(text, int8)'] LOOP
        EXECUTE format('CREATE FUNCTION ${schema}.%s RETURNS text LANGUAGE plpgsql AS
          ''BEGIN PERFORM ${schema}.ran(); RETURN NULL; END''', l);
      END LOOP;
      CREATE AGGREGATE ${schema}.max(anyelement) (SFUNC = ${schema}.forged, STYPE = int8, INITCOND = '0');
      CREATE AGGREGATE ${schema}.count(anyelement) (SFUNC = ${schema}.forged, STYPE = int8, INITCOND = '0');
    END $plant$;
    CREATE FUNCTION ${schema}.checked() RETURNS pg_catalog.bool LANGUAGE plpgsql AS
      $$ BEGIN PERFORM ${schema}.ran(); RETURN true; END $$;
    CREATE TYPE ${schema}.own AS (a pg_catalog.int4);
    CREATE FUNCTION ${schema}.to_json(${schema}.own) RETURNS pg_catalog.json LANGUAGE plpgsql AS
      $$ BEGIN PERFORM ${schema}.ran(); RETURN '1'; END $$;
    CREATE CAST (${schema}.own AS pg_catalog.json) WITH FUNCTION ${schema}.to_json(${schema}.own) AS IMPLICIT;
    ${plantTypes(schema, schema)}`;
}

/** Types in another schema than the rest, such as pg_temp, which is searched first for types and tables, and for nothing else. */
export function plantTypes(schema: string, rest: string): string {
  const domain = (name: string) => `CREATE DOMAIN ${schema}.${name} AS pg_catalog.${name} CHECK (${rest}.checked());`;
  return OPERANDS.map(domain).join('\n');
}

/** The roles, other than the planter, as whom something planted has run. */
export const victims = (schema: string) => `SELECT r.rolname AS role FROM ${schema}.ran_as AS s
  JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) s.last_value::pg_catalog.oid WHERE s.is_called`;
