import { identifier } from '../migrations/fence-sql.js';
import { inTransaction } from '../servers/postgres.js';
import { type Check, fault, ok } from './check.js';
import type { PostgresSubject } from './subject.js';

interface Definition {
  readonly kind: string;
  readonly persistence: string;
  readonly type: string;
  readonly increment: string;
  readonly cache: string;
  readonly cycle: boolean;
}

/** What the sequence must be, and what becomes of the tokens otherwise. */
const REQUIRED: ReadonlyArray<readonly [(is: Definition) => boolean, string]> = [
  [(is) => is.type === 'bigint', 'it does not count in bigint: tokens would come to an end'],
  [(is) => is.increment === '1', 'it does not count by 1'],
  [(is) => is.cache === '1', 'it has a CACHE: sessions would hand out tokens that they kept back, out of order'],
  [(is) => !is.cycle, 'it has CYCLE: tokens would begin again'],
  [(is) => is.persistence === 'p', 'it is UNLOGGED: after a crash tokens would be issued twice'],
];

const definition: Check<PostgresSubject> = {
  name: 'sequence',
  essential: true,
  async look({ ask, database, fix }) {
    const [is] = await ask<Definition>(
      `SELECT c.relkind::text AS kind, c.relpersistence::text AS persistence, s.seqtypid::regtype::text AS type,
         s.seqincrement::text AS increment, s.seqcache::text AS cache, s.seqcycle AS cycle
       FROM pg_class AS c LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid
       WHERE c.oid = to_regclass('fenced_lock.token')`,
    );
    if (is?.kind !== 'S') return fault('fenced_lock.token is not a sequence.', 'Restore it from the migration.');
    const wrong = REQUIRED.filter(([holds]) => !holds(is)).map(([, problem]) => problem);
    if (wrong.length === 0) return ok('CACHE 1, NO CYCLE, by 1.');
    const logged = is.persistence === 'p' ? '' : '; ALTER SEQUENCE fenced_lock.token SET LOGGED';
    const mend = `ALTER SEQUENCE fenced_lock.token AS bigint NO MAXVALUE INCREMENT 1 CACHE 1 NO CYCLE${logged}`;
    if (!fix) return fault(`Of fenced_lock.token: ${wrong.join('; ')}.`, `doctor --fix, or ${mend}`);
    await database.query(mend);
    return ok(`Mended: ${wrong.join('; ')}.`);
  },
};

const position: Check<PostgresSubject> = {
  name: 'sequence position',
  async look(subject) {
    const [drawn] = await subject.ask<{ value: string }>(
      'SELECT CASE WHEN is_called THEN last_value ELSE 0 END::text AS value FROM fenced_lock.token',
    );
    const [highest, where] = await highestUsed(subject);
    const last = BigInt(drawn?.value ?? 0);
    if (last >= highest) return ok(`At ${last}; the highest token in use is ${highest}.`);
    const behind = `The sequence is at ${last}, and token ${highest} is in use in ${where}, as after a restore`;
    if (subject.fix) return ok(`${behind}: set to ${await setForward(subject, highest)}.`);
    return fault(`${behind}: new holders would be refused as stale.`, 'doctor --fix');
  },
};

async function highestUsed({ ask, fences }: PostgresSubject): Promise<[bigint, string]> {
  let highest = 0n;
  let where = '';
  const there = await ask<{ table: string; column: string }>(
    `SELECT f.table, f.column FROM jsonb_to_recordset($1::jsonb) AS f("table" text, "column" text)
     JOIN pg_attribute AS a ON a.attrelid = to_regclass(f.table) AND a.attname = f.column
       AND NOT a.attisdropped AND a.atttypid = 'bigint'::regtype`,
    [JSON.stringify(fences ?? [])],
  );
  for (const { table, column } of [{ table: 'fenced_lock.admission', column: 'token' }, ...there]) {
    const [row] = await ask<{ value: string | null }>(`SELECT max(${identifier(column)})::text AS value FROM ${table}`);
    const value = BigInt(row?.value ?? 0);
    if (value > highest) [highest, where] = [value, table];
  }
  return [highest, where];
}

/**
 * ALTER SEQUENCE keeps every nextval waiting until this commits. Without that a token drawn in between could be set
 * back, and issued again.
 */
function setForward({ database }: PostgresSubject, highest: bigint): Promise<string> {
  return inTransaction(database, 'BEGIN', async () => {
    await database.query(`SET LOCAL lock_timeout = '5s'`);
    await database.query('ALTER SEQUENCE fenced_lock.token CACHE 1');
    const [row] = await database.query<{ value: string }>(
      `SELECT setval('fenced_lock.token', greatest(last_value, $1::bigint))::text AS value FROM fenced_lock.token`,
      [highest.toString()],
    );
    return row?.value ?? '';
  });
}

export const sequenceChecks: readonly Check<PostgresSubject>[] = [definition, position];
