import type { LockState, Taken } from '../../call/operators.js';
import type { Asked, Context } from '../context.js';
import { withLocks } from '../servers/locks.js';
import type { ServerOptions } from '../servers/urls.js';
import { visible } from '../visible.js';
import { cells, checkedKey, documented, HEADINGS } from './lock-state.js';

export interface UnlockOptions extends ServerOptions {
  readonly dryRun?: boolean;
}

/** Takes a key from its holder, as `$locks.forceRelease` does. */
export async function unlock(context: Context, given: string, options: UnlockOptions): Promise<void> {
  const key = checkedKey(given);
  const dryRun = options.dryRun === true;
  await withLocks(context, options, async (locks, asked) => {
    const before = await locks.inspect(key);
    for (const [at, cell] of cells(before).entries()) {
      context.say(`${(HEADINGS[at] ?? '').toLowerCase().padEnd(16)} ${cell}`);
    }
    const taken = dryRun ? undefined : await locks.take(key);
    if (taken === undefined) {
      if (wasNeverSeen(before)) context.say(`${visible(key)} is not held, and nobody has it. ${CHECK_NAME}`);
    } else {
      for (const line of done(key, before, taken, asked)) context.say(line);
    }
    const warning = doubt(before, taken);
    if (warning !== undefined) context.say(dryRun ? warning : `  ${warning}`);
    if (dryRun) context.say('Nothing was changed.');
    context.document({
      command: 'unlock',
      ok: true,
      dryRun,
      before: documented(before),
      ...(taken && {
        ended: taken.ended,
        token: taken.token === undefined ? null : { before: before.token ?? null, after: taken.token },
        leaseTaken: taken.leaseTaken,
      }),
      ...(warning !== undefined && { warning }),
    });
  });
}

const CHECK_NAME = 'Check its name; npx fenced-lock ls lists the keys that are in use.';

function done(key: string, before: LockState, taken: Taken, { postgres, redis }: Asked): string[] {
  const { holder, token, ended, leaseTaken } = taken;
  if (token === undefined)
    return [
      `${visible(key)} was not held, and it has no token that could be made stale: nothing was changed. ${CHECK_NAME}`,
    ];
  const gaveBack = holder !== undefined && !leaseTaken && ended.length === 0;
  const backends = ended.length === 1 ? `backend ${ended[0]} was` : `backends ${ended.join(', ')} were`;
  const transaction = ended.length === 0 ? 'no transaction was in the way' : `${backends} ended`;
  const former = before.token === undefined ? `is ${token}, and there was none` : `was ${before.token} and is ${token}`;
  return [
    gaveBack ? `${visible(key)} was given back meanwhile:` : `Unlocked ${visible(key)}:`,
    `  In PostgreSQL ${postgres.address}: ${transaction}; the token ${former}.`,
    `  In Redis ${redis?.address}: ${inRedis(before, taken)}.`,
  ];
}

function inRedis({ problem, waiting }: LockState, { holder, leaseTaken }: Taken): string {
  if (holder === undefined && problem === undefined) return 'there was no lease';
  if (!leaseTaken) return 'that holder had no lease any more, and nothing was taken from a later one';
  const what = problem === undefined ? 'the lease was taken' : 'what stood in the place of its lease was deleted';
  if (waiting === 0) return what;
  return `${what}, and passed on: ${waiting} ${waiting === 1 ? 'process was' : 'processes were'} in the queue`;
}

/** Whether neither server shows anything of the key. Its first transaction may have it all the same. */
function wasNeverSeen({ holder, problem, waiting, token, transaction }: LockState): boolean {
  return [holder, problem, token, transaction].every((part) => part === undefined) && waiting === 0;
}

/** What suggests that one of the servers is not the application's; `undefined` if nothing does. */
function doubt({ holder, problem, token, transaction }: LockState, { ended } = { ended: [] } as Pick<Taken, 'ended'>) {
  const isAtWork = transaction !== undefined || ended.length > 0;
  if (problem !== undefined) return undefined;
  if (holder === undefined && isAtWork) return OTHER_REDIS;
  return holder !== undefined && token === undefined && !isAtWork ? OTHER_DATABASE : undefined;
}

const OTHER_REDIS =
  'A transaction had the key in Postgres, and no process had it in Redis. If Redis has neither lost the lease nor been ' +
  'away, this is not the Redis of the application, or the application has another --key-prefix.';
const OTHER_DATABASE =
  'A process had the key in Redis, and no transaction had ever committed under it in Postgres. If that process was ' +
  'not about to begin its first one, this is not the database of the application.';
