import { identifier } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import type { PostgresSubject } from './subject.js';

/**
 * No lock has drawn a token above this: at a million a second, it would take 285 years. The sequence may be set this
 * far without harm: it has a thousand times as many tokens.
 */
export const BEYOND = 2n ** 53n;

/** A column with tokens. */
export interface Place {
  /** The table as a quoted SQL name. */
  readonly table: string;
  readonly column: string;
  /** Whether this is the table of admissions. */
  readonly admission: boolean;
}

export interface Token extends Place {
  readonly token: bigint;
  /** The row as an SQL condition. Only the primary key, because other columns may be confidential. */
  readonly row: string;
}

const ADMISSION: Place = { table: 'fenced_lock.admission', column: 'token', admission: true };

/** The table of admissions, and those fence columns of the schema that exist. */
export async function placesOf({ ask, fences }: PostgresSubject): Promise<Place[]> {
  const there = await ask<{ table: string; column: string }>(
    `SELECT f.table, f.column FROM jsonb_to_recordset($1::jsonb) AS f("table" text, "column" text)
     JOIN pg_attribute AS a ON a.attrelid = to_regclass(f.table) AND a.attname = f.column
       AND NOT a.attisdropped AND a.atttypid = 'bigint'::regtype`,
    [JSON.stringify(fences instanceof Problem ? [] : fences)],
  );
  return [ADMISSION, ...there.map((place) => ({ ...place, admission: false }))];
}

/** The last token that the sequence has drawn. */
export async function lastDrawn({ ask }: PostgresSubject): Promise<bigint> {
  const [row] = await ask<{ value: string }>(
    'SELECT CASE WHEN is_called THEN last_value ELSE 0 END::text AS value FROM fenced_lock.token',
  );
  return BigInt(row?.value ?? 0);
}

/** The highest tokens above a number that the sequence has not drawn, up to `limit` for each place. */
export async function tokensAbove(
  subject: PostgresSubject,
  places: readonly Place[],
  above: bigint,
  { upTo, limit }: { upTo: bigint; limit: number },
): Promise<Token[]> {
  const { ask } = subject;
  const found: Token[] = [];
  for (const place of places) {
    const column = `t.${identifier(place.column)}`;
    const rows = await ask<{ token: string; row: string }>(
      `SELECT ${column}::text AS token, ${await rowOf(ask, place)} AS row FROM ${place.table} AS t
       WHERE ${column} > $1::bigint AND ${column} <= $2::bigint ORDER BY ${column} DESC LIMIT $3::integer`,
      [above.toString(), upTo.toString(), limit],
    );
    found.push(...rows.map(({ token, row }) => ({ ...place, token: BigInt(token), row })));
  }
  // Locks go on drawing tokens meanwhile. A token is drawn before it can be seen in a row, so only a position that is
  // read after the rows tells which of them were not drawn. A sequence that is beyond all tokens tells nothing.
  const last = await lastDrawn(subject);
  return last < BEYOND ? found.filter(({ token }) => token > last) : found;
}

/** An SQL expression that returns a row's condition. */
async function rowOf(ask: PostgresSubject['ask'], { table }: Place): Promise<string> {
  const columns = await ask<{ name: string }>(
    `SELECT a.attname::text AS name FROM pg_index AS i
     JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
     WHERE i.indrelid = to_regclass($1) AND i.indisprimary ORDER BY a.attnum`,
    [table],
  );
  if (columns.length === 0) return `format('ctid = %L AND tableoid = %L::regclass', t.ctid, t.tableoid::regclass)`;
  const parts = columns.map(
    ({ name }) =>
      `format('${identifier(name).replaceAll("'", "''").replaceAll('%', '%%')} = %L', t.${identifier(name)})`,
  );
  return `concat_ws(' AND ', ${parts.join(', ')})`;
}
