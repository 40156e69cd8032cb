import Table from 'cli-table3';
import { isExact, lost, type Outcome, oversold, salesPerSecond } from './tally.js';

const HEAD = ['strategy', 'stock in', 'sold', 'oversold', 'lost', 'refused', 'stood still, s', 'sales per second'];

/** Sold to stood still: with a frozen process. Sales per second: without one. */
function row({ strategy, stockIn, calm, frozen }: Outcome): string[] {
  return [
    strategy,
    stockIn,
    ...[frozen.sold, oversold(frozen), lost(frozen), frozen.refused].map(String),
    frozen.stoodStill.toFixed(1),
    String(Math.round(salesPerSecond(calm))),
  ];
}

/** For a terminal. */
export function table(outcomes: readonly Outcome[]): string {
  const shown = new Table({ head: HEAD, style: { head: [], border: [] } });
  shown.push(...outcomes.map(row));
  return shown.toString();
}

/** For the documentation. */
export function markdown(outcomes: readonly Outcome[]): string {
  const lines = [HEAD, HEAD.map((_, index) => (index < 2 ? '---' : '---:')), ...outcomes.map(markdownRow)];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function markdownRow(outcome: Outcome): string[] {
  const [strategy = '', ...rest] = row(outcome);
  return [strategy.startsWith('$') ? `\`${strategy}\`` : strategy, ...rest];
}

/** 0 only if `$withLock` sold exactly what there was in both runs. How much the others lose is a matter of timing. */
export function exitCode(outcomes: readonly Outcome[]): 0 | 1 {
  const fenced = outcomes.filter(({ strategy }) => strategy === '$withLock');
  return fenced.length > 0 && fenced.every(({ calm, frozen }) => isExact(calm) && isExact(frozen)) ? 0 : 1;
}
