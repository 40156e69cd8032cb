import Table from 'cli-table3';
import { isExact, lost, oversold, type Tally } from './tally.js';
import { colors } from './terminal.js';

export function table(tallies: readonly Tally[]): string {
  const shown = new Table({
    head: ['run', 'sold', 'oversold', 'lost', 'refused', 'seconds'],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right'],
    // Its own colours would be written to a pipe too.
    style: { head: [], border: [] },
  });
  for (const tally of tallies) {
    shown.push([
      tally.strategy,
      String(tally.sold),
      wrongUnless0(oversold(tally)),
      wrongUnless0(lost(tally)),
      String(tally.refused),
      tally.seconds.toFixed(1),
    ]);
  }
  return shown.toString();
}

/** What was shown, and nothing that was not: timing decides how much the first two runs lose. */
export function conclusion(tallies: readonly Tally[]): string {
  return tallies.map(sentence).join('\n');
}

/** 0 only if the fenced run, and there must be one, sold exactly what there was. */
export function exitCode(tallies: readonly Tally[]): 0 | 1 {
  const fenced = tallies.filter(isFenced);
  return fenced.length > 0 && fenced.every(isExact) ? 0 : 1;
}

function isFenced({ strategy }: Tally): boolean {
  return strategy.startsWith('$withLock');
}

function sentence(tally: Tally): string {
  const { strategy, sold, units, refused, orders } = tally;
  if (isFenced(tally)) {
    if (!isExact(tally)) {
      return colors.red(
        `${strategy}: NOT EXACT: ${sold} sold, ${orders} orders, ${lost(tally)} lost, of ${units} units. ` +
          'This must never happen; please report it.',
      );
    }
    const late =
      refused === 0
        ? 'no write came too late'
        : `the ${times(refused)} that came too late was refused, and the buyer tried again`;
    return `${strategy}: exactly ${sold} sold: ${late}.`;
  }
  if (lost(tally) === 0) return `${strategy}: nothing was lost this time.`;
  const how =
    strategy === 'no lock'
      ? 'writers who had read the same quantity overwrote each other'
      : 'the worker that was frozen past its lease came back and wrote beside the next holder';
  const missing = lost(tally) === 1 ? 'is' : 'are';
  return `${strategy}: ${how}; ${lost(tally)} of ${sold} sales ${missing} missing in the stock.`;
}

function times(count: number): string {
  return count === 1 ? 'one write' : `${count} writes`;
}

function wrongUnless0(count: number): string {
  return count === 0 ? colors.green('0') : colors.red(String(count));
}
