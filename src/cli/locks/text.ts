import { visible } from '../visible.js';
import type { LockRow } from './state.js';

export const HEADINGS = [
  'KEY',
  'PROCESS',
  'HOLDER',
  'EXPIRES IN',
  'WAITING',
  'TOKEN',
  'ADMITTED',
  'TRANSACTION',
] as const;

/** What stands under the headings. */
export function cells(state: LockRow): string[] {
  const { key, holder, process, expiresIn, waiting, problem, token, admittedAt, transaction } = state;
  const nobody = problem === undefined ? '-' : '(a value that is no lease)';
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

/** To the second, in UTC: clocks of other machines are not looked at. */
function time(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
