import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { type CommittedTurn, lastTurns } from '../locks/last-turns.js';
import { withDatabase } from '../servers/both.js';
import type { DatabaseOptions } from '../servers/urls.js';
import { visible } from '../visible.js';
import { checkedKey } from './key.js';

/** Shows the last turns of a key that have committed. */
export async function history(context: Context, given: string, options: DatabaseOptions): Promise<void> {
  const key = checkedKey(given);
  const { turns, last } = await withDatabase(context, options, (database) => lastTurns(key, database));
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
