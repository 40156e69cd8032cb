import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asSvg } from './charts.js';
import { asHtml } from './html.js';
import type { Report } from './result.js';

/** Writes the report in both forms, and each chart as an SVG. Returns their paths. */
export function write(report: Report, directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  const json = join(directory, 'report.json');
  const html = join(directory, 'report.html');
  // JSON has no NaN.
  writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(html, asHtml(report));
  const charts = report.scenarios.flatMap(({ scenario, tables }) =>
    tables.flatMap((table, at) => {
      const svg = asSvg(table);
      const file = join(directory, `${scenario}-${at + 1}.svg`);
      if (svg !== undefined) writeFileSync(file, svg);
      return svg === undefined ? [] : [file];
    }),
  );
  return [json, html, ...charts];
}
