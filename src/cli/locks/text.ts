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
] as const;

/** The cells of a key, in the order of the headings. */
export function cells(state: LockRow): string[] {
  const { key, holder, process, expiresIn, waiting, problem, token, admittedAt, transaction } = state;
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
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** UTC time in seconds. */
function time(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
