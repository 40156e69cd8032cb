import { InvalidOptionError } from '../../base/errors.js';
import type { LockState } from '../../call/operators.js';
import { checkKey } from '../../options/arguments.js';
import { Misuse } from '../problem.js';
import { visible } from '../visible.js';

export const HEADINGS = [
  'KEY',
  'PROCESS',
  'HOLDER',
  'EXPIRES IN',
  'WAITING',
  // A transaction at work has a token that nobody else sees before it has committed.
  'LAST TOKEN',
  'LAST ADMITTED',
  'TRANSACTION NOW',
  'WHO WAITS',
] as const;

/** How many of those who wait a line names. */
const NAMED = 3;

/** The cells of a key, in the order of the headings. */
export function cells(state: LockState): string[] {
  const { key, holder, process, expiresIn, waiting, waiters, problem, token, admittedAt, transaction } = state;
  const nobody = problem === undefined ? '-' : '(a value that is not a lease)';
  const named = waiters.slice(0, NAMED).map((name) => (name === undefined ? '?' : visible(name)));
  const others = waiting - named.length;
  return [
    visible(key),
    process === undefined ? '-' : visible(process),
    holder === undefined ? nobody : visible(holder),
    holder === undefined ? '-' : `${(expiresIn / 1_000).toFixed(1)} s`,
    String(waiting),
    token === undefined ? '-' : String(token),
    admittedAt === undefined ? '-' : time(admittedAt),
    transaction === undefined ? '-' : `${transaction.pid} since ${time(transaction.since)}`,
    waiting === 0 ? '-' : [...named, ...(others > 0 ? [`${others} more`] : [])].join(', '),
  ];
}

/** The state for --json, where what is not known is `null`. */
export function documented(state: LockState): object {
  const { holder = null, process = null, token = null, admittedAt = null, transaction = null } = state;
  const waiters = state.waiters.map((name) => name ?? null);
  return { ...state, holder, process, waiters, token, admittedAt, transaction };
}

/** UTC time in seconds. */
export function time(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** A key, as it was given on the command line. @throws Misuse */
export function checkedKey(key: string): string {
  try {
    return checkKey(key);
  } catch (error) {
    throw error instanceof InvalidOptionError ? new Misuse(error.message) : error;
  }
}
