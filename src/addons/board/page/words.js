// What the page says of its own state and before a force release. No document is needed to try it.

import { clock, number } from './text.js';

/** @typedef {import('./state.js').Key} Key */
/** @typedef {import('./state.js').State} State */

/**
 * Whether what is shown is up to date.
 *
 * @param {State} state
 * @param {boolean} isPaused
 * @returns {{ kind: 'connecting' | 'live' | 'paused' | 'old' | 'lost', text: string }}
 */
export function linkOf(state, isPaused) {
  if (state.isConnected === undefined) return { kind: 'connecting', text: 'Connecting …' };
  const shows = state.known ? ` What you see is ${asOf(state)}.` : '';
  if (!state.isConnected) return { kind: 'lost', text: `The board’s server does not answer. Trying again …${shows}` };
  if (isPaused) return { kind: 'paused', text: 'Paused' };
  if (state.isOld) return { kind: 'old', text: `Connected, but the data is old: ${asOf(state)}` };
  return state.status?.trouble === undefined
    ? { kind: 'live', text: 'Live' }
    : { kind: 'old', text: 'Connected, but the keys cannot be read' };
}

/**
 * When the keys were seen last.
 *
 * @param {State} state
 */
function asOf({ seenAt }) {
  return seenAt === undefined ? 'of an unknown time' : `as of ${clock(seenAt)}`;
}

/**
 * Above the facts of a key; empty if they are of the present.
 *
 * @param {State} state
 */
export function oldFacts(state) {
  return state.isOld ? `The keys cannot be read now. All of this is ${asOf(state)}, and may be different by now.` : '';
}

/**
 * What a force release does with what is known of the key now.
 *
 * @param {State} state
 * @param {Key | undefined} key
 */
export function consequences(state, key) {
  const isHeld = key?.holder != null;
  const known =
    key?.transaction == null
      ? `No transaction of it is open in this database; if one is opened by then, it is ended and rolled back.${
          isHeld ? ' If it works in another one, it goes on there.' : ''
        }`
      : `Its open transaction (Postgres backend ${key.transaction.pid}) is ended and rolled back.`;
  const later = isHeld ? 'Later writes of that holder in this database are refused as stale. ' : '';
  const old = state.isOld ? `This is ${asOf(state)}, and may be different by now. ` : '';
  return `${old}${known} ${later}The next process that waits gets the key. Nothing that was committed is lost.`;
}

/** A rate is not told of less; milliseconds. */
const LEAST_WATCHED = 5_000;

/**
 * Turns a minute, by the part of the last minute that was watched.
 *
 * @param {number[]} turnBars
 * @param {{ ms: number, bars: number } | undefined} minute
 */
export function rateText(turnBars, minute) {
  if (minute === undefined || minute.bars === 0) return '–';
  const turns = turnBars.slice(-minute.bars).reduce((sum, count) => sum + count, 0);
  if (turns === 0) return '–';
  if (minute.ms < LEAST_WATCHED) return '…';
  return `${number(Math.max(1, Math.round((turns * 60_000) / minute.ms)))} /min`;
}
