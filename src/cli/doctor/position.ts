import { DOCS } from '../../base/errors.js';
import { identifier } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import { type Check, fault, ok } from './check.js';
import type { PostgresSubject } from './subject.js';

/**
 * No lock has drawn a token above this: at a million a second, it would take 285 years. The sequence may be set this
 * far without harm: it has a thousand times as many tokens.
 */
const BEYOND = 2n ** 53n;
const BY_HAND = `${DOCS}operators.md#a-fence-that-no-lock-has-set`;

interface Highest {
  /** The table as a quoted SQL name. */
  readonly table: string;
  /** The highest token in it, and the highest one that a lock may have drawn. */
  readonly token: bigint;
  readonly drawn: bigint;
}

export const position: Check<PostgresSubject> = {
  name: 'sequence position',
  async look(subject) {
    // Before the sequence is read: locks go on drawing tokens, and a token is drawn before it can be seen in a row.
    const highest = await highestTokens(subject);
    const last = await lastDrawn(subject);
    if (last >= BEYOND) {
      return fault(
        `The sequence is at ${last}, which no lock has reached. When it ends, no lock can be taken.`,
        `Set it back: ${BY_HAND}`,
      );
    }
    const wild = highest.filter(({ token }) => token > BEYOND);
    if (wild.length > 0) {
      return wild.map(({ table, token }) =>
        fault(
          `${table} has the token ${token}, which no lock has drawn: a lock that writes its row is refused.`,
          `Lower it: ${BY_HAND}`,
        ),
      );
    }
    const [first] = highest.toSorted((one, other) => Number(other.drawn - one.drawn));
    if (first === undefined || first.drawn <= last) return ok(`At ${last}, and no higher token is in use.`);
    const behind = `The sequence is at ${last}, and token ${first.drawn} is in use in ${first.table}, as after a restore`;
    if (subject.fix) return ok(`${behind}: set to ${await setForward(subject, first.drawn)}.`);
    return fault(
      `${behind}: new holders would be refused as stale.`,
      `doctor --fix. If it was set by hand: ${BY_HAND}`,
    );
  },
};

/** Of the table of admissions, and of those fence columns of the schema that exist. */
async function highestTokens({ ask, fences }: PostgresSubject): Promise<Highest[]> {
  const columns = await ask<{ table: string; column: string }>(
    `SELECT f.table, f.column FROM jsonb_to_recordset($1::jsonb) AS f("table" text, "column" text)
     JOIN pg_attribute AS a ON a.attrelid = to_regclass(f.table) AND a.attname = f.column
       AND NOT a.attisdropped AND a.atttypid = 'bigint'::regtype`,
    [JSON.stringify(fences instanceof Problem ? [] : fences)],
  );
  const found: Highest[] = [];
  for (const { table, column } of [{ table: 'fenced_lock.admission', column: 'token' }, ...columns]) {
    const name = identifier(column);
    const [row] = await ask<{ token: string | null; drawn: string | null }>(
      `SELECT max(${name})::text AS token, (max(${name}) FILTER (WHERE ${name} <= $1::bigint))::text AS drawn FROM ${table}`,
      [BEYOND.toString()],
    );
    found.push({ table, token: BigInt(row?.token ?? 0), drawn: BigInt(row?.drawn ?? 0) });
  }
  return found;
}

async function lastDrawn({ ask }: PostgresSubject): Promise<bigint> {
  const [row] = await ask<{ value: string }>(
    'SELECT CASE WHEN is_called THEN last_value ELSE 0 END::text AS value FROM fenced_lock.token',
  );
  return BigInt(row?.value ?? 0);
}

/**
 * ALTER SEQUENCE blocks every nextval until this commits. Otherwise a token that is drawn in between could be issued
 * again.
 */
function setForward({ database }: PostgresSubject, highest: bigint): Promise<string> {
  return database.transaction('BEGIN', async (query) => {
    await query(`SET LOCAL lock_timeout = '5s'`);
    await query('ALTER SEQUENCE fenced_lock.token CACHE 1');
    const [row] = await query<{ value: string }>(
      `SELECT setval('fenced_lock.token', greatest(last_value, $1::bigint))::text AS value FROM fenced_lock.token`,
      [highest.toString()],
    );
    return row?.value ?? '';
  });
}
