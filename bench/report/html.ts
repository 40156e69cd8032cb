import { drawn } from './charts.js';
import { shown } from './numbers.js';
import type { Cell, Report, ScenarioResult, Table } from './result.js';

const STYLE = `
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
  table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 }
  th, td { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: left; white-space: nowrap }
  td.number { text-align: right; font-variant-numeric: tabular-nums }
  .table { overflow-x: auto } .note { color: #555; font-size: 13px } .error { color: #b00 }`;

/** One file that needs no other. */
export function asHtml(report: Report): string {
  const facts = {
    started: report.startedAt,
    seed: report.seed,
    'warm-up': report.warmUp,
    ...report.machine,
    ...report.versions,
  };
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Benchmark</title><style>${STYLE}</style></head><body>
<h1>Benchmark${report.quick ? ' (quick: no figure of it is worth quoting)' : ''}</h1>
${tableHtml([...Object.entries(facts)].map(([what, value]) => ({ what, value })))}
${report.scenarios.map(scenarioHtml).join('\n')}
</body></html>
`;
}

function scenarioHtml({ scenario, about, tables, error }: ScenarioResult): string {
  const failed = error === undefined ? '' : `<p class="error">Failed: ${escaped(error)}</p>`;
  return `<h2>${escaped(scenario)}</h2><p>${escaped(about)}</p>${failed}${tables.map(section).join('\n')}`;
}

function section(table: Table): string {
  const note = table.note === undefined ? '' : `<p class="note">${escaped(table.note)}</p>`;
  return `<h3>${escaped(table.title)}</h3>${drawn(table)}${tableHtml(table.rows)}${note}`;
}

function tableHtml(rows: Table['rows']): string {
  const columns = Object.keys(rows[0] ?? {});
  const head = columns.map((column) => `<th>${escaped(column)}</th>`).join('');
  const body = rows.map((row) => `<tr>${columns.map((column) => cellHtml(row[column] ?? '')).join('')}</tr>`);
  return `<div class="table"><table><thead><tr>${head}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`;
}

function cellHtml(cell: Cell): string {
  return typeof cell === 'number' ? `<td class="number">${shown(cell)}</td>` : `<td>${escaped(cell)}</td>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
