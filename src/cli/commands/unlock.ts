import type { Context } from '../context.js';
import { type Raised, raiseToken, raiseTokenIfUsed, serverTime } from '../locks/raise-token.js';
import { describe, type LockRow } from '../locks/state.js';
import { cells, HEADINGS } from '../locks/text.js';
import { messageOf, Problem } from '../problem.js';
import { type ServerOptions, type Servers, withServers } from '../servers/both.js';
import { visible } from '../visible.js';
import { checkedKey } from './key.js';

export interface UnlockOptions extends ServerOptions {
  readonly dryRun?: boolean;
}

/** Takes a key from its holder, in Postgres first, then in Redis. */
export async function unlock(context: Context, given: string, options: UnlockOptions): Promise<void> {
  const key = checkedKey(given);
  await withServers(context, options, async (servers) => {
    const { locks, database } = servers;
    context.asks(servers.asked);
    const foundAt = await serverTime(database);
    const [before] = await describe([await locks.inspect(key)], database);
    for (const [at, cell] of (before === undefined ? [] : cells(before)).entries()) {
      context.say(`${(HEADINGS[at] ?? '').toLowerCase().padEnd(16)} ${cell}`);
    }
    if (options.dryRun) {
      if (before === undefined || wasNeverSeen(before)) context.say(neverSeen(key));
      const doubt = before && doubtful(before);
      if (doubt !== undefined) context.say(doubt);
      context.say('Nothing was changed.');
      context.document({
        command: 'unlock',
        ok: true,
        dryRun: true,
        before,
        ...(doubt !== undefined && { warning: doubt }),
      });
      return;
    }
    const { token, leaseTaken, text, warning } = await takeAway(servers, key, before, foundAt);
    context.say(text);
    if (warning !== undefined) context.say(`  ${warning}`);
    context.document({
      command: 'unlock',
      ok: true,
      dryRun: false,
      before,
      ended: token?.ended ?? [],
      token: token === undefined ? null : { before: token.before, after: token.after },
      leaseTaken,
      ...(warning !== undefined && { warning }),
    });
  });
}

/**
 * Takes a key from whoever has it, and says what was done. `before`: how the key was found, by a look that began at
 * `foundAt`; no `token`: nobody had it.
 */
export async function takeAway(servers: Servers, key: string, before: LockRow | undefined, foundAt: number) {
  const { locks } = servers;
  // From the holder that it was: who has got the lease since may be well, and has not been admitted yet.
  const inTheWay = before?.holder ?? (before?.problem === undefined ? null : '');
  const inUse = inTheWay !== null || (before?.waiting ?? 0) > 0;
  const raise = inUse ? raiseToken : raiseTokenIfUsed;
  const token = await raise(servers.database, await servers.aside(), key, foundAt);
  if (token === undefined) return { token, leaseTaken: false, text: notHeld(key), warning: undefined };
  const leaseTaken = await takeLease(servers, key, inTheWay, token);
  // What was done is told in any case.
  const later = await locks.inspect(key).catch(() => undefined);
  const warning = mismatch(before, later, token, leaseTaken);
  const { postgres, redis } = servers.asked;
  const tookNothing = before !== undefined && before.holder !== null && !leaseTaken && token.ended.length === 0;
  const lines = [
    tookNothing ? `${visible(key)} was given back meanwhile:` : `Unlocked ${visible(key)}:`,
    `  In PostgreSQL ${postgres.address}: ${inPostgres(token)}.`,
    `  In Redis ${redis.address}: ${inRedis(before, leaseTaken)}.`,
    ...(before?.holder != null && !leaseTaken && later?.holder !== undefined ? [HELD_BY_ANOTHER] : []),
  ];
  return { token, leaseTaken, text: lines.join('\n'), warning };
}

async function takeLease({ locks }: Servers, key: string, holder: string | null, { after }: Raised): Promise<boolean> {
  try {
    return holder !== null && (await locks.force(key, holder));
  } catch (cause) {
    const remedy = cause instanceof Problem && cause.remedy !== undefined ? `${cause.remedy} Then run` : 'Run';
    throw new Problem(
      `The token of ${visible(key)} is ${after} now, so its holder's later writes are stale; but the lease was not ` +
        `taken: ${messageOf(cause)}.`,
      { cause, remedy: `${remedy} it again.` },
    );
  }
}

/** A handle that was resumed between the look and the raise has the lease with a token that is stale. */
const HELD_BY_ANOTHER = '  Another holder has it now. If it keeps the key and does nothing, run this again.';

const CHECK_NAME = 'Check its name; npx fenced-lock ls lists the keys that are in use.';

function notHeld(key: string): string {
  return `${visible(key)} was not held, and it has no token that could be made stale: nothing was changed. ${CHECK_NAME}`;
}

/** Whether neither server shows anything of the key. Its first transaction may have it all the same. */
function wasNeverSeen({ holder, problem, waiting, token, transaction }: LockRow): boolean {
  return holder === null && problem === undefined && waiting === 0 && token === null && transaction === null;
}

function neverSeen(key: string): string {
  return `${visible(key)} is not held, and no transaction has committed under it. ${CHECK_NAME}`;
}

function inPostgres({ before, after, ended }: Raised): string {
  const backends = ended.length === 1 ? `backend ${ended[0]} was` : `backends ${ended.join(', ')} were`;
  const transaction = ended.length === 0 ? 'no transaction was in the way' : `${backends} ended`;
  return `${transaction}; ${before === null ? `the token is ${after}, and there was none` : `the token was ${before} and is ${after}`}`;
}

function inRedis(before: LockRow | undefined, leaseTaken: boolean): string {
  const { holder = null, problem, waiting = 0 } = before ?? {};
  if (holder === null && problem === undefined) return 'there was no lease';
  if (!leaseTaken) return 'that holder had no lease any more, and nothing was taken from a later one';
  const taken = problem === undefined ? 'the lease was taken' : 'what stood in the place of its lease was deleted';
  if (waiting === 0) return taken;
  return `${taken}, and passed on: ${waiting} ${waiting === 1 ? 'process was' : 'processes were'} in the queue`;
}

/**
 * What suggests that one of the servers is not the application's; `undefined` if nothing does. `later`: how the key is
 * now, if that is known. A process may have taken it since it was found.
 */
function mismatch(
  found: LockRow | undefined,
  later: { readonly holder: string | undefined } | undefined,
  { before, ended }: Raised,
  leaseTaken: boolean,
): string | undefined {
  const isFree =
    found?.holder === null && found.problem === undefined && later !== undefined && later.holder === undefined;
  if (ended.length > 0 && isFree) return OTHER_REDIS;
  if (before === null && ended.length === 0 && leaseTaken && found?.problem === undefined) return OTHER_DATABASE;
  return undefined;
}

const OTHER_REDIS =
  'A transaction had the key in Postgres, and no process had it in Redis. If Redis has neither lost the lease nor been ' +
  'away, this is not the Redis of the application, or the application has another --key-prefix.';
const OTHER_DATABASE =
  'A process had the key in Redis, and no transaction had ever committed under it in Postgres. If that process was ' +
  'not about to begin its first one, this is not the database of the application.';

/** The same of a key that is only looked at. */
function doubtful({ holder, problem, token, transaction }: LockRow): string | undefined {
  if (problem !== undefined) return undefined;
  if (holder === null && transaction !== null) return OTHER_REDIS;
  return holder !== null && token === null && transaction === null ? OTHER_DATABASE : undefined;
}
