import CliTable from 'cli-table3';
import { shown } from './numbers.js';
import type { ScenarioResult, Table } from './result.js';

export function inText({ scenario, about, seconds, tables, error }: ScenarioResult): string {
  const head = `\n${scenario}: ${about} (${seconds.toFixed(0)} s)`;
  return [head, ...tables.map(tableText), ...(error === undefined ? [] : [`FAILED: ${error}`])].join('\n');
}

function tableText({ title, note, rows }: Table): string {
  const columns = Object.keys(rows[0] ?? {});
  const numeric = columns.map((column) => rows.every((row) => typeof row[column] === 'number'));
  const table = new CliTable({
    head: columns,
    style: { head: [], border: [], compact: true },
    colAligns: numeric.map((right) => (right ? 'right' : 'left')),
  });
  for (const row of rows) table.push(columns.map((column) => shown(row[column] ?? '')));
  return [`\n${title}`, table.toString(), ...(note === undefined ? [] : [note])].join('\n');
}
