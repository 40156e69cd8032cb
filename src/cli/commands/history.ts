import { LAST_TURNS } from '../../database/sql.js';
import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { withDatabase } from '../servers/both.js';
import type { DatabaseOptions } from '../servers/urls.js';
import { visible } from '../visible.js';
import { checkedKey } from './key.js';

interface Row {
  readonly attempts: readonly string[] | null;
  readonly turns: string | null;
  readonly seen: string | null;
  readonly token: string | null;
  readonly admitted_at: string | null;
}

/** A turn that has committed, as far as Postgres remembers it. */
interface CommittedTurn {
  readonly turn: string;
  readonly attempt: string;
  /** Of the last turn alone, as the time. */
  readonly token: string | null;
  readonly admittedAt: string | null;
}

/** Shows the last turns of a key that have committed. */
export async function history(context: Context, given: string, options: DatabaseOptions): Promise<void> {
  const key = checkedKey(given);
  const [row] = await withDatabase(context, options, (database) => database.query<Row>(LAST_TURNS, [key]));
  const turns = row?.turns ?? '0';
  const last = (row?.attempts ?? []).map((attempt, at): CommittedTurn => {
    // Where a turn has committed while this was read, the token is that one's.
    const isLast = at === 0 && row?.seen === turns;
    const [token, admittedAt] = isLast ? [row.token, row.admitted_at] : [null, null];
    return { turn: String(BigInt(turns) - BigInt(at)), attempt, token, admittedAt };
  });
  if (last.length === 0) context.say(`Postgres remembers no turn of ${visible(key)}.`);
  else say(context, last, turns);
  context.document({ command: 'history', ok: true, key, turns, last });
}

function say(context: Context, last: readonly CommittedTurn[], turns: string): void {
  const cells = last.map(({ turn, attempt, token, admittedAt }) => [turn, attempt, token ?? '-', admittedAt ?? '-']);
  const [headings = '', ...lines] = columns([['TURN', 'ATTEMPT', 'TOKEN', 'ADMITTED'], ...cells]);
  context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  const isPart = BigInt(turns) > BigInt(last.length);
  const which = isPart
    ? `The last ${last.length} of ${turns} committed turns.`
    : turns === '1'
      ? 'The one committed turn.'
      : `All ${turns} committed turns.`;
  context.say(`${which} Postgres keeps up to 16 of a key, and the token and the time of the last one only.`);
}
