import { type LockHistory, history as turnsOf } from '../../call/history.js';
import type { Context } from '../context.js';
import { withPostgres } from '../servers/postgres.js';
import { type DatabaseOptions, urlOf } from '../servers/urls.js';
import { columns, visible } from '../visible.js';
import { checkedKey } from './lock-state.js';

/** Shows the last turns of a key that have committed. */
export async function history(context: Context, given: string, options: DatabaseOptions): Promise<void> {
  const key = checkedKey(given);
  const { urls, from } = await urlOf(context, options, 'database');
  const { turns, last } = await withPostgres(context, urls[0], ({ query, place }) => {
    context.asks({ postgres: { address: visible(place), from } });
    return turnsOf(query, NO_ROOM, key);
  });
  if (last.length === 0) context.say(`Postgres remembers no turn of ${visible(key)}.`);
  else say(context, last, turns);
  const shown = last.map(({ turn, attempt, token = null, admittedAt = null }) => ({
    turn,
    attempt,
    token,
    admittedAt,
  }));
  context.document({ command: 'history', ok: true, key, turns, last: shown });
}

/** This process has recorded nothing. */
const NO_ROOM = 0;

function say(context: Context, last: LockHistory['last'], turns: bigint): void {
  const cells = last.map(({ turn, attempt, token, admittedAt }) =>
    [turn, attempt, token, admittedAt?.toISOString()].map((cell) => String(cell ?? '-')),
  );
  const [headings = '', ...lines] = columns([['TURN', 'ATTEMPT', 'TOKEN', 'ADMITTED'], ...cells]);
  context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  const isPart = turns > BigInt(last.length);
  const all = turns === 1n ? 'The one committed turn.' : `All ${turns} committed turns.`;
  const which = isPart ? `The last ${last.length} of ${turns} committed turns.` : all;
  context.say(`${which} Postgres keeps up to 16 of a key, and the token and the time of the last one only.`);
}
