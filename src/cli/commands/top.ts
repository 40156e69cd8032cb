import { setTimeout as pause } from 'node:timers/promises';
import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { hindrance, NO_KEY, NO_MATCH } from '../locks/no-keys.js';
import { serverTime } from '../locks/raise-token.js';
import { describe, type LockRow } from '../locks/state.js';
import { Problem } from '../problem.js';
import { askedOf, type ServerOptions, type Servers, withServers } from '../servers/both.js';
import { LastingServers } from '../servers/lasting.js';
import { foundDatabaseUrl, foundRedisUrls } from '../servers/urls.js';
import { askingAnew } from '../top/asking.js';
import { type LiveOptions, LiveView } from '../top/live.js';
import { askingOver, Sampler } from '../top/sample.js';
import { type Release, START, shown, shownRefused } from '../top/state.js';
import { lastRefused, printed } from '../top/view.js';
import { visible } from '../visible.js';
import { takeAway } from './unlock.js';

export interface TopOptions extends ServerOptions {
  /** Seconds between two samples. */
  readonly interval: number;
  readonly filter?: string;
}

/** Shows the keys that are in use, the hottest first: live in a terminal, else once. */
export async function top(context: Context, options: TopOptions): Promise<void> {
  if (context.terminal !== undefined) return await live(context, options, context.terminal);
  await withServers(context, options, async (servers) => {
    context.asks(servers.asked);
    await once(context, servers, options);
  });
}

/** Goes on, whatever becomes of the servers. */
async function live(context: Context, options: TopOptions, terminal: NonNullable<Context['terminal']>): Promise<void> {
  // Found once: the servers that the screen names are those that are asked, as long as it lasts.
  const database = await foundDatabaseUrl(context, options);
  const found = await foundRedisUrls(context, options);
  const given = { ...options, databaseUrl: database.url, redisUrl: found.urls };
  const servers = new LastingServers(context, given);
  const left = new AbortController();
  try {
    const places = await servers.withRedis(async (redis) => redis.places);
    const place = await servers.withDatabase(async (postgres) => postgres.place);
    const asked = askedOf({ at: place, place: database.place }, { at: places, place: found.place });
    context.asks(asked);
    const names = { postgres: `PostgreSQL ${asked.postgres.address}`, redis: `Redis ${asked.redis.address}` };
    const keyPrefix = options.keyPrefix ?? DEFAULTS.keyPrefix;
    const from = (server: 'postgres' | 'redis') => (asked.saysFrom ? asked[server].from : undefined);
    const view = new LiveView(new Sampler(askingAnew(servers, { ...names, keyPrefix })), {
      ...terminal,
      interval: options.interval * 1_000,
      filter: options.filter ?? '',
      asked: [
        { address: names.postgres, from: from('postgres') },
        { address: names.redis, from: from('redis') },
      ],
      now: context.now,
      clean: (text) => context.clean(text),
      release: releasing(context, given, left.signal),
      report: (text) => context.say(text),
    });
    await view.run();
  } finally {
    left.abort(new Problem('The view was left.'));
    servers.close();
  }
}

/** Two samples: how hot a key is tells only the difference. */
async function once(context: Context, servers: Servers, { interval, filter = '' }: TopOptions): Promise<void> {
  const sampler = new Sampler(askingOver(servers));
  await sampler.sample();
  await pause(interval * 1_000);
  const { rows, missing, refused: all } = await sampler.sample();
  const state = { ...START, filter };
  const refused = shownRefused(all, state);
  const warning = rows.length === 0 ? await hindrance(servers.database) : undefined;
  for (const why of missing) context.complain(`fenced-lock: Not all keys are here. ${why}`);
  if (warning !== undefined) context.complain(`fenced-lock: No lock can be taken. ${warning}`);
  const [headings = '', ...lines] = printed(rows, state);
  if (lines.length === 0) context.say(rows.length === 0 ? NO_KEY : NO_MATCH);
  else context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  for (const line of lastRefused(refused)) context.say(line);
  const keys = shown(rows, state).map(({ holder, holderId: _, isOffered: __, heat, transaction, ...row }) => ({
    ...row,
    holder: holder ?? null,
    turnsPerSecond: heat ?? null,
    transaction: transaction ?? null,
  }));
  const last = refused?.last.map(({ at, key, token, text, process }) => {
    return { at: new Date(at).toISOString(), key, token, process, text };
  });
  context.document({
    command: 'top',
    ok: true,
    keys,
    refused: last ?? null,
    ...(missing.length > 0 && { missing }),
    ...(warning !== undefined && { warning }),
  });
}

/** As `unlock` does it, on connections for this alone, which are closed when the view is left. */
function releasing(context: Context, options: ServerOptions, left: AbortSignal): LiveOptions['release'] {
  const leaving = new Promise<never>((_, reject) => {
    left.addEventListener('abort', () => reject(left.reason), { once: true });
  });
  leaving.catch(() => {});
  const release = async (servers: Servers, { key, holderId }: Release) => {
    const foundAt = await serverTime(servers.database);
    const [before] = await describe([await servers.locks.inspect(key)], servers.database);
    if (before?.holder !== (holderId ?? null)) return otherHolder(key, before);
    const { text, warning } = await takeAway(servers, key, before, foundAt);
    return warning === undefined ? text : `${warning} ${text}`;
  };
  return (asked) =>
    withServers(context, options, (servers) => {
      left.throwIfAborted();
      return Promise.race([leaving, release(servers, asked)]);
    });
}

/** Whoever answered `y` has decided about one holder. The one that follows it may be well. */
function otherHolder(key: string, now: LockRow | undefined): string {
  const became = now?.holder == null ? 'given back' : `passed on to ${visible(now.process ?? now.holder)}`;
  return `${visible(key)} was ${became} since you were asked. Nothing was changed.`;
}
