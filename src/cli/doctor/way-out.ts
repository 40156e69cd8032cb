import { identifier } from '../migrations/identifiers.js';
import type { PostgresSubject } from './subject.js';
import { type Place, tokensAbove } from './tokens.js';

/** The rows of one table whose fence was not set by a lock, and the statements that lower it. */
interface WayOut {
  readonly table: string;
  /** The first rows. */
  readonly rows: string;
  /** The highest fence. */
  readonly token: bigint;
  readonly statements: string;
}

const HIGHEST = 2n ** 63n - 1n;
/** How many rows are named. */
const NAMED = 3;

/** Finds the rows above a number, for each table. */
export async function wayOut(subject: PostgresSubject, places: readonly Place[], above: bigint): Promise<WayOut[]> {
  const found = await tokensAbove(subject, places, above, { upTo: HIGHEST, limit: NAMED + 1 });
  const ways: WayOut[] = [];
  for (const place of places) {
    const here = found.filter(({ table }) => table === place.table);
    const [highest] = here;
    if (highest === undefined) continue;
    const named = here.slice(0, NAMED).map(({ row }) => `(${row})`);
    ways.push({
      table: place.table,
      rows: `${named.join(', ')}${here.length > NAMED ? ' and others' : ''}`,
      token: highest.token,
      statements: statements(place, above),
    });
  }
  return ways;
}

/**
 * The guard lets a fence decrease only under `override`. Deleting an admission makes its token stale. The statements ask
 * the sequence anew: between the report and their execution, locks may have drawn tokens above the number.
 */
function statements({ table, column, admission }: Place, to: bigint): string {
  const name = identifier(column);
  const undrawn = `${name} > (SELECT greatest(last_value, ${to}) FROM fenced_lock.token)`;
  if (admission) return `DELETE FROM ${table} WHERE ${undrawn}`;
  return `BEGIN; SELECT fenced_lock.override('no lock drew it'); UPDATE ${table} SET ${name} = ${to} WHERE ${undrawn}; COMMIT`;
}
