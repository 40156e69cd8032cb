import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { shown } from './numbers.js';
import type { Cell, Chart, Table } from './result.js';

type Row = Readonly<Record<string, Cell>>;

const WIDTH = 760;
/** Of a file of its own: a telephone shows it in two thirds of its size. */
const NARROW = 480;
const COLOR = '#3a6ea5';

/** A chart as an SVG that needs nothing else; nothing where there is nothing to draw. */
export function drawn({ rows, chart }: Table, width = WIDTH): string {
  if (chart === undefined) return '';
  const drawable = rows.filter((row) => isDrawable(row[chart.value], chart));
  if (drawable.length === 0) return '';
  // Plot draws into a document, and Node has none.
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const plot = chart.kind === 'bar' ? bars(drawable, chart) : lines(drawable, chart);
  return Plot.plot({ ...plot, document, width }).outerHTML;
}

/** A chart as a file of its own, on white, because a page may be dark. */
export function asSvg(table: Table): string | undefined {
  const svg = drawn(table, NARROW);
  if (svg === '') return undefined;
  const [start = ''] = /<svg[^>]*>/.exec(svg) ?? [];
  const title = table.title.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const own = start
    .replace('<svg', '<svg xmlns="http://www.w3.org/2000/svg" color="#222"')
    .replace('font-size="10"', 'font-size="13"');
  // The styles of Plot are for a chart that stands in a page.
  return svg
    .replace(/<style>.*?<\/style>/s, '')
    .replace(start, `${own}<title>${title}</title><rect width="100%" height="100%" fill="#fff"/>`);
}

function isDrawable(value: Cell | undefined, { logarithmic }: Chart): boolean {
  return typeof value === 'number' && Number.isFinite(value) && (logarithmic !== true || value > 0);
}

function bars(rows: readonly Row[], { label, value, series, logarithmic }: Chart): Plot.PlotOptions {
  const least = Math.min(...rows.map((row) => Number(row[value])));
  const text = (row: Row) => shown(row[value] ?? '');
  const place = { y: label, ...(series !== undefined && { fy: series }) };
  return {
    marginLeft: 165,
    marginRight: 60,
    x: { grid: true, label: value, ...(logarithmic === true && { type: 'log' }) },
    y: { label: null, domain: [...new Set(rows.map((row) => row[label]))] },
    fy: { label: null },
    marks: [
      // A bar of a logarithmic axis has no zero to begin at.
      Plot.barX(rows, { ...place, x1: logarithmic === true ? least / 2 : 0, x2: value, fill: COLOR }),
      Plot.text(rows, { ...place, x: value, text, dx: 4, textAnchor: 'start' }),
    ],
  };
}

function lines(rows: readonly Row[], { label, value, series, logarithmic }: Chart): Plot.PlotOptions {
  const stroke = series ?? COLOR;
  return {
    marginLeft: 60,
    marginRight: 150,
    x: { grid: true, label, ...(logarithmic === true && { type: 'log' }) },
    y: { grid: true, label: value, zero: logarithmic !== true, ...(logarithmic === true && { type: 'log' }) },
    marks: [
      Plot.line(rows, { x: label, y: value, stroke, z: series ?? null, marker: true }),
      ...(series === undefined
        ? []
        : [
            Plot.text(
              rows,
              Plot.selectLast({ x: label, y: value, z: series, text: series, dx: 6, textAnchor: 'start' }),
            ),
          ]),
    ],
  };
}
