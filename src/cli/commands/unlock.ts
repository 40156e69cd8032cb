import type { Context } from '../context.js';
import { type Raised, raiseToken, raiseTokenIfUsed } from '../locks/raise-token.js';
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
    const [before] = await describe([await locks.inspect(key)], database);
    for (const [at, cell] of (before === undefined ? [] : cells(before)).entries()) {
      context.say(`${(HEADINGS[at] ?? '').toLowerCase().padEnd(16)} ${cell}`);
    }
    if (options.dryRun) {
      context.say('Nothing was changed.');
      context.document({ command: 'unlock', ok: true, dryRun: true, before });
      return;
    }
    const { token, leaseTaken, text } = await takeAway(servers, key, before);
    context.say(text);
    context.document({
      command: 'unlock',
      ok: true,
      dryRun: false,
      before,
      ended: token?.ended ?? [],
      token: token === undefined ? null : { before: token.before, after: token.after },
      leaseTaken,
    });
  });
}

/** Takes a key from whoever has it, and says what was done. `before`: how the key was found; no `token`: nobody had it. */
export async function takeAway(servers: Servers, key: string, before: LockRow | undefined) {
  // From the holder that it was: who has the key since was admitted after us, and is well.
  const inTheWay = before?.holder ?? (before?.problem === undefined ? null : '');
  const inUse = inTheWay !== null || (before?.waiting ?? 0) > 0;
  const raise = inUse ? raiseToken : raiseTokenIfUsed;
  const token = await raise(servers.database, await servers.aside(), key);
  if (token === undefined) return { token, leaseTaken: false, text: notHeld(key) };
  const leaseTaken = await takeLease(servers, key, inTheWay, token);
  return { token, leaseTaken, text: done(key, token, leaseTaken) };
}

async function takeLease({ locks }: Servers, key: string, holder: string | null, { after }: Raised): Promise<boolean> {
  try {
    return holder !== null && (await locks.force(key, holder));
  } catch (cause) {
    throw new Problem(
      `The token of ${visible(key)} is ${after} now, so its holder's later writes are stale; but the lease was not ` +
        `taken: ${messageOf(cause)}. Run it again.`,
      { cause },
    );
  }
}

function notHeld(key: string): string {
  return (
    `${visible(key)} was not held, and it has no token that could be made stale: nothing was changed. ` +
    'Check its name; npx fenced-lock ls lists the keys that are in use.'
  );
}

function done(key: string, { before, after, ended }: Raised, leaseTaken: boolean): string {
  const backends = ended.length === 1 ? `Backend ${ended[0]} was` : `Backends ${ended.join(', ')} were`;
  return [
    `Unlocked ${visible(key)}:`,
    ended.length === 0 ? '  No transaction was in the way.' : `  ${backends} ended.`,
    before === null ? `  The token is ${after}; there was none.` : `  The token was ${before} and is ${after}.`,
    leaseTaken
      ? '  The lease was taken, and passed on to the next waiting process.'
      : '  There was no lease, or it had been released.',
  ].join('\n');
}
