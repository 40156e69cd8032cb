// What the page says of its own state and before a force release. No document is needed to try it.

import type { Key, State } from './state.js';
import { clock } from './text.js';

/** Whether what is shown is up to date: the class of its dot, and a sentence. */
export function linkOf(
  state: State,
  isPaused: boolean,
): readonly [kind: '' | 'good' | 'warning' | 'bad', text: string] {
  if (state.isConnected === undefined) return ['', 'Connecting …'];
  const shows = state.known ? ` What you see is ${asOf(state)}.` : '';
  if (!state.isConnected) return ['bad', `The board’s server does not answer. Trying again …${shows}`];
  if (isPaused) return ['', 'Paused'];
  if (state.isOld) return ['warning', `Connected, but the data is old: ${asOf(state)}`];
  return state.isTroubled ? ['warning', 'Connected, but the keys cannot be read'] : ['good', 'Live'];
}

/** When the keys were seen last. */
function asOf({ seenAt }: State): string {
  return seenAt === undefined ? 'of an unknown time' : `as of ${clock(seenAt)}`;
}

/** Above the facts of a key; empty if they are of the present. */
export function oldFacts(state: State): string {
  return state.isOld ? `The keys cannot be read now. All of this is ${asOf(state)}, and may be different by now.` : '';
}

/** What a force release does with what is known of the key now. */
export function consequences(state: State, key: Key | undefined): string {
  const isHeld = key?.holder !== undefined;
  const elsewhere = isHeld ? ' If it works in another one, it goes on there.' : '';
  const known =
    key?.transaction === undefined
      ? `No transaction of it is open in this database; if one is opened by then, it is ended and rolled back.${elsewhere}`
      : `Its open transaction (Postgres backend ${key.transaction.pid}) is ended and rolled back.`;
  const later = isHeld ? 'Later writes of that holder in this database are refused as stale. ' : '';
  const old = state.isOld ? `This is ${asOf(state)}, and may be different by now. ` : '';
  return `${old}${known} ${later}The next process that waits gets the key. Nothing that was committed is lost.`;
}
