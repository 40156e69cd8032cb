import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context.js';
import { describe } from '../locks/state.js';
import { type ServerOptions, type Servers, withServers } from '../servers/both.js';
import { LiveView } from '../top/live.js';
import { Sampler } from '../top/sample.js';
import { START, shown } from '../top/state.js';
import { lastRefused, printed } from '../top/view.js';
import { takeAway } from './unlock.js';

export interface TopOptions extends ServerOptions {
  /** Seconds between two samples. */
  readonly interval: number;
  readonly filter?: string;
}

/** Shows the keys that are in use, the hottest first: live in a terminal, else once. */
export async function top(context: Context, options: TopOptions): Promise<void> {
  const { filter = '' } = options;
  const interval = options.interval * 1_000;
  await withServers(context, options, async (servers) => {
    context.asks(servers.asked);
    const { postgres, redis } = servers.asked;
    const asked = [`PostgreSQL ${postgres.address}`, `Redis ${redis.address}`];
    const sampler = new Sampler(servers);
    const terminal = context.terminal;
    if (terminal === undefined) return await once(context, sampler, interval, filter);
    const { input, output, colours } = terminal;
    const release = releasing(servers);
    const clean = (text: string) => context.clean(text);
    const report = (text: string) => context.say(text);
    const options = { input, output, colours, interval, filter, asked, now: context.now, clean, release, report };
    await new LiveView(sampler, options).run();
  });
}

/** Two samples: how hot a key is tells only the difference. */
async function once(context: Context, sampler: Sampler, interval: number, filter: string): Promise<void> {
  await sampler.sample();
  await pause(interval);
  const { rows, missing, refused } = await sampler.sample();
  const state = { ...START, filter };
  for (const why of missing) context.complain(`fenced-lock: Not all keys are here. ${why}`);
  const [headings = '', ...lines] = printed(rows, state);
  if (lines.length === 0) context.say('Nobody has a key, or waits for one.');
  else context.say(context.paint('bold', headings));
  for (const line of lines) context.say(line);
  for (const line of lastRefused(refused)) context.say(line);
  const keys = shown(rows, state).map(({ holder, heat, transaction, ...row }) => ({
    ...row,
    holder: holder ?? null,
    turnsPerSecond: heat ?? null,
    transaction: transaction ?? null,
  }));
  const last = refused?.last.map(({ at, key, token, text, process }) => {
    return { at: new Date(at).toISOString(), key, token, process, text };
  });
  context.document({ command: 'top', ok: true, keys, refused: last ?? null, ...(missing.length > 0 && { missing }) });
}

/** As `unlock` does it. The second connection is made once. */
function releasing(servers: Servers): (key: string) => Promise<string> {
  let aside: ReturnType<Servers['aside']> | undefined;
  return async (key) => {
    const [before] = await describe([await servers.locks.inspect(key)], servers.database);
    aside ??= servers.aside();
    const own = { ...servers, aside: () => aside as ReturnType<Servers['aside']> };
    const { text, warning } = await takeAway(own, key, before);
    // On one line, of which a narrow terminal shows the begin.
    return warning === undefined ? text : `${warning} ${text}`;
  };
}
