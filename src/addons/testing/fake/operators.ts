import { randomUUID } from 'node:crypto';
import type { LockState } from '../../../call/operators.js';
import type { SeenState } from '../../../options/options.js';
import type { FakeParts } from './parts.js';

/** How many waiters a real store shows. */
const MOST_WAITERS = 100;

/** What `$locks.inspect` of a fake shows. `leaseTime`: that of a call without options. */
export function inspect({ turns, admissions }: FakeParts, key: string, leaseTime: number): LockState {
  const turn = turns.holderOf(key);
  const holder = turn?.holders[turn.keys.indexOf(key)];
  const waiting = turns.waiting(key);
  // All of them are of this process, which has no name here.
  const waiters = Array.from({ length: Math.min(waiting, MOST_WAITERS) }, () => undefined);
  const expiresIn = turn === undefined ? 0 : leaseTime;
  return { key, holder, expiresIn, waiting, waiters, ...admissions.of(key), transaction: undefined };
}

/**
 * Takes a key from whoever has it, and makes the token of that one stale. `false` if nobody has it, or not the holder of
 * `seen`.
 */
export function forceRelease({ turns, admissions }: FakeParts, key: string, seen?: SeenState): boolean {
  turns.throwIfClosing(key);
  const turn = turns.holderOf(key);
  if (seen !== undefined && seen.holder !== turn?.holders[turn.keys.indexOf(key)]) return false;
  admissions.draw({ keys: [key], holders: [randomUUID()] }).commit();
  turn?.lose('gone', key);
  return turn !== undefined;
}
