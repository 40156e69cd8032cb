import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { hindrance, NO_KEY } from '../locks/no-keys.js';
import { describe } from '../locks/state.js';
import { cells, HEADINGS } from '../locks/text.js';
import { type ServerOptions, withServers } from '../servers/both.js';

/** Lists the keys that are held or waited for. Without any, says so, and whether the database is why there is none. */
export async function ls(context: Context, options: ServerOptions): Promise<void> {
  const { keys, missing, warning } = await withServers(context, options, async ({ locks, database, asked }) => {
    context.asks(asked);
    const found = await locks.list();
    const sorted = found.keys.toSorted((one, other) => (one.key < other.key ? -1 : 1));
    const warning = sorted.length === 0 ? await hindrance(database) : undefined;
    return { keys: await describe(sorted, database), missing: found.missing, warning };
  });
  for (const why of missing) context.complain(`fenced-lock: Not all keys are here. ${why}`);
  if (warning !== undefined) context.complain(`fenced-lock: No lock can be taken. ${warning}`);
  const [headings = '', ...lines] = columns([HEADINGS, ...keys.map(cells)]);
  if (lines.length === 0 && missing.length === 0) context.say(NO_KEY);
  else context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  context.document({
    command: 'ls',
    ok: true,
    keys,
    ...(missing.length > 0 && { missing }),
    ...(warning !== undefined && { warning }),
  });
}
