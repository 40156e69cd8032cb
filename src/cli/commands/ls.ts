import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { describe } from '../locks/state.js';
import { cells, HEADINGS } from '../locks/text.js';
import { type ServerOptions, withServers } from '../servers/both.js';

/** Lists the keys that are held or waited for. */
export async function ls(context: Context, options: ServerOptions): Promise<void> {
  const { keys, missing } = await withServers(context, options, async ({ locks, database, asked }) => {
    context.asks(asked);
    const found = await locks.list();
    const sorted = found.keys.toSorted((one, other) => (one.key < other.key ? -1 : 1));
    return { keys: await describe(sorted, database), missing: found.missing };
  });
  for (const why of missing) context.complain(`fenced-lock: Not all keys are here. ${why}`);
  const [headings = '', ...lines] = columns([HEADINGS, ...keys.map(cells)]);
  if (lines.length === 0 && missing.length === 0) context.say('No key is held or waited for.');
  else context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  context.document({ command: 'ls', ok: true, keys, ...(missing.length > 0 && { missing }) });
}
