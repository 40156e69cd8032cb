import { setTimeout as pause } from 'node:timers/promises';
import { OVERDUE, within } from '../../base/clock.js';
import { DEFAULTS } from '../../options/options.js';
import { columns } from '../columns.js';
import type { Context } from '../context.js';
import { hindrance, NO_KEY, NO_MATCH } from '../locks/no-keys.js';
import { describe, type LockRow } from '../locks/state.js';
import { cells, HEADINGS } from '../locks/text.js';
import { advised, Misuse, Problem } from '../problem.js';
import { type ServerOptions, toBeAsked, withServers } from '../servers/both.js';
import { LastingServers } from '../servers/lasting.js';
import type { PostgresServer } from '../servers/postgres.js';
import type { Locks } from '../servers/redis-server.js';

export interface LsOptions extends ServerOptions {
  readonly filter?: string;
  readonly watch?: boolean;
  /** Seconds between two looks of `watch`. */
  readonly interval: number;
}

/** How long a look may take: a machine that was cut off tells nobody that its connections are gone; milliseconds. */
const ANSWERS_WITHIN = 10_000;

/** What one look has found. `warning`: why no key can be taken in this database. */
interface Looked {
  readonly keys: readonly LockRow[];
  readonly missing: readonly string[];
  readonly warning: string | undefined;
}

/** Lists the keys that are held or waited for. Without any, says so, and whether the database is why there is none. */
export async function ls(context: Context, options: LsOptions, stopped: () => Promise<unknown>): Promise<void> {
  if (options.watch) return await watch(context, options, stopped());
  const looked = await withServers(context, options, async ({ locks, database, asked }) => {
    context.asks(asked);
    return await look(locks, (work) => work(database), options);
  });
  const { keys, missing, warning } = looked;
  for (const line of troubles(looked)) context.complain(`fenced-lock: ${line}`);
  for (const line of table(context, looked, options)) context.say(line);
  context.document({
    command: 'ls',
    ok: true,
    keys,
    ...(missing.length > 0 && { missing }),
    ...(warning !== undefined && { warning }),
  });
}

/** Shows the list again and again, until it is stopped. A server that goes away is asked again. */
async function watch(context: Context, options: LsOptions, stopped: Promise<unknown>): Promise<void> {
  if (context.isJson)
    throw new Misuse('--watch shows the list to people: leave --json out, and call ls again and again.');
  context.asks(await toBeAsked(context, options));
  const servers = new LastingServers(context, options);
  const keyPrefix = options.keyPrefix ?? DEFAULTS.keyPrefix;
  const left = new AbortController();
  const { signal } = left;
  let shown: readonly string[] | undefined;
  const show = async () => {
    const { round } = servers;
    const looking = servers.withRedis(({ locks }) =>
      look(locks(keyPrefix), (work) => servers.withDatabase(work, round), options),
    );
    const looked = await within(looking, ANSWERS_WITHIN);
    if (looked === OVERDUE) throw new Problem(`The servers did not answer within ${ANSWERS_WITHIN / 1_000} s.`);
    shown = [...troubles(looked), ...table(context, looked, options)];
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
        // What fails at the start is more likely a wrong URL or a missing right than a restart.
        if (shown === undefined || signal.aborted) throw error;
        failing ??= context.now();
        servers.close();
        const why = `Since ${timeOf(failing)} the servers cannot be asked, and are asked again: ${advised(error)}`;
        context.screen(context.now(), [why, ...shown.map((line) => context.paint('dim', line))]);
      }
    }
  };
  try {
    // Whoever leaves does not wait for a server that does not answer.
    await Promise.race([stopped, loop()]);
  } finally {
    left.abort();
    servers.close();
  }
}

async function look(
  locks: Locks,
  ask: <T>(work: (database: PostgresServer) => Promise<T>) => Promise<T>,
  { filter = '' }: LsOptions,
): Promise<Looked> {
  const found = await locks.list();
  const matching = found.keys.filter(({ key }) => key.includes(filter));
  const sorted = matching.toSorted((one, other) => (one.key < other.key ? -1 : 1));
  const warning = found.keys.length === 0 ? await ask(hindrance) : undefined;
  return { keys: await ask((database) => describe(sorted, database)), missing: found.missing, warning };
}

function troubles({ missing, warning }: Looked): string[] {
  const absent = missing.map((why) => `Not all keys are here. ${why}`);
  return warning === undefined ? absent : [...absent, `No lock can be taken. ${warning}`];
}

function table(context: Context, { keys, missing }: Looked, { filter }: LsOptions): string[] {
  const [headings = '', ...lines] = columns([HEADINGS, ...keys.map(cells)]);
  if (lines.length === 0 && missing.length === 0) return [filter === undefined ? NO_KEY : NO_MATCH];
  return [context.paint('bold', headings), ...lines];
}

/** UTC time in seconds. */
function timeOf(date: Date): string {
  return `${date.toISOString().slice(11, 19)}Z`;
}
