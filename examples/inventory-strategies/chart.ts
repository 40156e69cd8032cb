import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { lost, type Outcome, salesPerSecond } from './tally.js';

const WIDTH = 760;
const BAD = '#b3403a';
const SPEED = '#3a6ea5';
const STILL = '#8a7a3a';

/** Three bars for each strategy: what it lost, how long it stood still, how fast it is. One SVG that needs nothing else. */
export function chart(outcomes: readonly Outcome[]): string {
  const names = outcomes.map(({ strategy }) => strategy);
  const parts = [
    bars(names, 'sales lost while one process was frozen', BAD, (n) => lost((outcomes[n] as Outcome).frozen)),
    bars(
      names,
      'nobody sold for so long while one process was frozen, s',
      STILL,
      (n) => (outcomes[n] as Outcome).frozen.stoodStill,
    ),
    bars(names, 'sales per second without a frozen process', SPEED, (n) =>
      salesPerSecond((outcomes[n] as Outcome).calm),
    ),
  ];
  const height = 22 * names.length + 70;
  const placed = parts.map((svg, n) => svg.replace('<svg', `<svg y="${n * height}"`));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height * parts.length}" ` +
      `viewBox="0 0 ${WIDTH} ${height * parts.length}" color="#222" font-family="system-ui, sans-serif" font-size="12">`,
    '<title>What each way of selling loses</title>',
    '<rect width="100%" height="100%" fill="#fff"/>',
    ...placed,
    '</svg>\n',
  ].join('\n');
}

function bars(names: readonly string[], label: string, fill: string, value: (n: number) => number): string {
  // Plot draws into a document, and Node has none.
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const rows = names.map((name, n) => ({ name, value: value(n), text: shown(value(n)) }));
  const plot = Plot.plot({
    document,
    width: WIDTH,
    height: 22 * names.length + 60,
    marginLeft: 160,
    marginRight: 50,
    x: { grid: true, label, labelAnchor: 'left', zero: true },
    y: { label: null, domain: names },
    marks: [
      Plot.barX(rows, { y: 'name', x: 'value', fill }),
      Plot.text(rows, { y: 'name', x: 'value', text: 'text', dx: 4, textAnchor: 'start' }),
    ],
  });
  // A title instead of the style sheet, which is of no use outside of a page.
  return plot.outerHTML.replace(/<style>[\s\S]*?<\/style>/, `<title>${label}</title>`);
}

function shown(value: number): string {
  return Number.isInteger(value) || value >= 10 ? String(Math.round(value)) : value.toFixed(1);
}
