import { readFileSync, writeFileSync } from 'node:fs';
import { versions } from '../report/machine.js';
import { LEASE_TIME, NO_FAULT, type Outcome, type Terms } from './compare.js';
import { CALLERS, PROCESSES } from './crew.js';
import { FAULTS } from './faults.js';

const TABLE = /(<!-- made by npm run compare -->\n)[\s\S]*?(<!-- end -->)/;
const CAUSES = [NO_FAULT, ...FAULTS.map(({ name }) => name)];

export interface Comparison extends Terms {
  readonly outcomes: readonly Outcome[];
  readonly seed: number;
  readonly servers: string;
}

/** For the documentation. Sales are left to the details: they are no speed on a machine that does something else, too. */
export function markdown({ outcomes, seed, seconds, strikes, servers }: Comparison): string {
  const head = ['lost by, under', ...CAUSES, 'told wrong', 'standstill, s'];
  const losers = outcomes.filter(isWrong);
  const others = outcomes.filter((outcome) => !isWrong(outcome));
  const rows = [head, head.map((_, index) => (index === 0 ? '---' : '---:')), ...losers.map(row)];
  const faults = counts(strikes.map(({ fault }) => fault.name)).join(', ');
  const stood = others.map(({ contestant, standstill }) => `${named(contestant)} (${standstill.toFixed(1)})`);
  return [
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
    '',
    `Nothing lost and nothing told wrong (standstill, s): ${stood.join(', ')}.`,
    '',
    `Seed ${seed}, ${seconds} s each: ${faults}. ${PROCESSES} processes with ${CALLERS} callers each, leases of ` +
      `${LEASE_TIME / 1_000} s. ${servers}, Node ${process.versions.node}.`,
  ].join('\n');
}

function isWrong({ lost, wrong }: Outcome): boolean {
  return total(lost) !== 0 || wrong.length > 0;
}

function row({ contestant, lost, wrong, standstill }: Outcome): string[] {
  const counted = [...CAUSES.map((cause) => lost[cause] ?? 0), wrong.length];
  return [named(contestant), ...counted.map(String), standstill.toFixed(1)];
}

/** Ours as code, a package of npm with its version. */
function named(contestant: string): string {
  const version = versions()[contestant];
  return version === undefined ? contestant.replace(/\$\w+/, '`$&`') : `${contestant} ${version}`;
}

/** What is not in the table, for whoever looks into it. */
export function details({ contestant, sales, unanswered, struck, wrong, died, errors }: Outcome): string {
  const parts = { struck, 'told wrong': wrong, 'process died': died, errors };
  const lines = Object.entries(parts).flatMap(([part, all]) => counts(all).map((line) => `  ${part}: ${line}`));
  return [`${contestant}: ${sales} sales, ${unanswered} without an answer`, ...lines].join('\n');
}

function counts(names: readonly string[]): string[] {
  return [...new Set(names)].map((name) => `${names.filter((one) => one === name).length} × ${name}`);
}

export function write(page: string, comparison: Comparison): void {
  const text = readFileSync(page, 'utf8');
  if (!TABLE.test(text)) throw new Error(`${page} has no place for the table.`);
  const filled = (_: string, begin: string, end: string) => `${begin}\n${markdown(comparison)}\n\n${end}`;
  writeFileSync(page, text.replace(TABLE, filled));
}

/** 1 if one of the package's own ways has lost a sale or told one wrong. What the others lose is a matter of timing. */
export function exitCode(outcomes: readonly Outcome[]): 0 | 1 {
  const ours = outcomes.filter(({ contestant }) => contestant.startsWith('$'));
  return ours.some(isWrong) ? 1 : 0;
}

function total(lost: Outcome['lost']): number {
  return Object.values(lost).reduce((sum, one) => sum + one, 0);
}
