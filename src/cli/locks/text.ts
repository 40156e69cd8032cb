import { visible } from '../visible.js';
import type { LockRow } from './state.js';

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
export function cells(state: LockRow): string[] {
  const { key, holder, process, expiresIn, waiting, waiters, problem, token, admittedAt, transaction } = state;
  const nobody = problem === undefined ? '-' : '(a value that is not a lease)';
  return [
    visible(key),
    process === null ? '-' : visible(process),
    holder === null ? nobody : visible(holder),
    holder === null ? '-' : seconds(expiresIn),
    String(waiting),
    token ?? '-',
    admittedAt === null ? '-' : time(admittedAt),
    transaction === null ? '-' : `${transaction.pid} since ${time(transaction.since)}`,
    waiting === 0 ? '-' : inOrder(waiters, waiting),
  ];
}

/** The first of those who wait, and how many others do. */
function inOrder(waiters: readonly (string | null)[], waiting: number): string {
  const named = waiters.slice(0, NAMED).map(waiterName);
  const others = waiting - named.length;
  return [...named, ...(others > 0 ? [`${others} more`] : [])].join(', ');
}

/** The name of a process that waits, as text. */
function waiterName(name: string | null): string {
  return name === null ? '?' : visible(name);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** UTC time in seconds. */
function time(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
