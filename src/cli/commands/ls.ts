import { setTimeout as pause } from 'node:timers/promises';
import type { LockState } from '../../call/operators.js';
import type { Context } from '../context.js';
import { advised, Misuse } from '../problem.js';
import { findServers, type Locks, openLocks, withLocks } from '../servers/locks.js';
import type { ServerOptions } from '../servers/urls.js';
import { columns } from '../visible.js';
import { cells, documented, HEADINGS, time } from './lock-state.js';

export interface LsOptions extends ServerOptions {
  readonly filter?: string;
  readonly watch?: boolean;
  /** Seconds between two looks of `watch`. */
  readonly interval: number;
}

/** What one look has found. `warning`: why no key can be taken in this database. */
interface Looked {
  readonly keys: readonly LockState[];
  readonly warning: string | undefined;
}

/** Lists the keys that are held or waited for. Without any, says so, and whether the database is why there is none. */
export async function ls(context: Context, options: LsOptions, stopped: () => Promise<unknown>): Promise<void> {
  if (options.watch) return await watch(context, options, stopped());
  await withLocks(context, options, async (locks) => {
    const looked = await look(locks, options);
    const { keys, warning } = looked;
    if (warning !== undefined) context.complain(`fenced-lock: ${warning}`);
    for (const line of table(context, keys, options)) context.say(line);
    const document = { command: 'ls', ok: true, keys: keys.map(documented) };
    context.document({ ...document, ...(warning !== undefined && { warning }) });
  });
}

/** Shows the list again and again, until it is stopped. A server that goes away is asked again. */
async function watch(context: Context, options: LsOptions, stopped: Promise<unknown>): Promise<void> {
  if (context.isJson)
    throw new Misuse('--watch shows the list to people: leave --json out, and call ls again and again.');
  const places = await findServers(context, options, true);
  context.asks(places.asked);
  const left = new AbortController();
  const { signal } = left;
  // What fails at the start is more likely a wrong URL or a missing right than a restart.
  const locks = await openLocks(context, places, options.keyPrefix);
  let shown: readonly string[] | undefined;
  const show = async () => {
    const { keys, warning } = await look(locks, options);
    shown = [...(warning === undefined ? [] : [warning]), ...table(context, keys, options)];
    return shown;
  };
  const loop = async () => {
    for (let failing: Date | undefined; ; await pause(options.interval * 1_000, undefined, { signal })) {
      try {
        const lines = await show();
        signal.throwIfAborted();
        context.screen(context.now(), lines);
        failing = undefined;
      } catch (error) {
        if (shown === undefined || signal.aborted) throw error;
        failing ??= context.now();
        const since = time(failing).slice(11);
        const why = `Since ${since} the servers cannot be asked, and are asked again: ${advised(error)}`;
        context.screen(context.now(), [why, ...shown.map((line) => context.paint('dim', line))]);
      }
    }
  };
  try {
    // Whoever leaves does not wait for a server that does not answer.
    await Promise.race([stopped, loop()]);
  } finally {
    left.abort();
    await locks.close();
  }
}

async function look(locks: Locks, { filter = '' }: LsOptions): Promise<Looked> {
  const found = await locks.list();
  const keys = found.filter(({ key }) => key.includes(filter)).toSorted((one, other) => (one.key < other.key ? -1 : 1));
  if (found.length > 0) return { keys, warning: undefined };
  // A list without keys asks Postgres nothing, so it would look the same before the first migration. Any key will do.
  const refusal = await locks.inspect('fenced-lock').catch((error: unknown) => ({ error }));
  return { keys, warning: 'error' in refusal ? `No lock can be taken. ${advised(refusal.error)}` : undefined };
}

function table(context: Context, keys: readonly LockState[], { filter }: LsOptions): string[] {
  if (keys.length === 0) return [filter === undefined ? 'No key is held or waited for.' : 'No key matches.'];
  const [headings = '', ...lines] = columns([HEADINGS, ...keys.map(cells)]);
  return [context.paint('bold', headings), ...lines];
}
