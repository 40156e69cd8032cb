import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asHtml } from './html.js';
import type { Report } from './result.js';

/** Writes the report in both forms. Returns their paths. */
export function write(report: Report, directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  const json = join(directory, 'report.json');
  const html = join(directory, 'report.html');
  // JSON has no NaN.
  writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(html, asHtml(report));
  return [json, html];
}
