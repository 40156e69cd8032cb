import { LAST_TURNS } from '../../database/sql.js';
import type { PostgresServer } from '../servers/postgres.js';

interface Row {
  readonly attempts: readonly string[] | null;
  readonly turns: string | null;
  readonly seen: string | null;
  readonly token: string | null;
  readonly admitted_at: string | null;
}

/** A turn that has committed, as far as Postgres remembers it. */
export interface CommittedTurn {
  readonly turn: string;
  readonly attempt: string;
  /** Known of the last turn alone, as the time. */
  readonly token: string | null;
  readonly admittedAt: string | null;
}

/** The last turns of a key, the newest first, and how many there were. */
export async function lastTurns(
  key: string,
  database: PostgresServer,
): Promise<{ readonly turns: string; readonly last: readonly CommittedTurn[] }> {
  const [row] = await database.query<Row>(LAST_TURNS, [key]);
  const turns = row?.turns ?? '0';
  const last = (row?.attempts ?? []).map((attempt, at): CommittedTurn => {
    // If a turn has committed during the read, the token is of that turn.
    const isLast = at === 0 && row?.seen === turns;
    const [token, admittedAt] = isLast ? [row.token, row.admitted_at] : [null, null];
    return { turn: String(BigInt(turns) - BigInt(at)), attempt, token, admittedAt };
  });
  return { turns, last };
}
