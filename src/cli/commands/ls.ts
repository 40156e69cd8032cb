import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { describe, type LockState } from '../locks/state.js';
import { cells, HEADINGS } from '../locks/text.js';
import { type ServerOptions, withServers } from '../servers/both.js';

/** Lists the keys that somebody has or waits for. */
export async function ls(context: Context, options: ServerOptions): Promise<void> {
  const keys = await withServers(context, options, async ({ locks, database }): Promise<LockState[]> => {
    const found = await locks.list();
    return await describe(
      found.toSorted((one, other) => (one.key < other.key ? -1 : 1)),
      database,
    );
  });
  const [headings = '', ...lines] = columns([HEADINGS, ...keys.map(cells)]);
  if (lines.length === 0) context.say('Nobody has a key, or waits for one.');
  else context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  context.document({ command: 'ls', ok: true, keys });
}
