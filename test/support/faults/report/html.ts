import { readFileSync } from 'node:fs';
import type { Figures } from './figures.js';
import type { Timeline } from './timeline.js';

export interface Report {
  readonly title: string;
  /** What it ran on, and the command that repeats it. */
  readonly about: readonly string[];
  readonly figures: Figures;
  readonly rounds: readonly Timeline[];
}

/** A page that needs nothing but itself. */
export function htmlOf(report: Report): string {
  const page = readFileSync(new URL('./page.html', import.meta.url), 'utf8');
  // Nothing in it can end the script element that it stands in.
  const data = JSON.stringify(report).replaceAll('<', '\\u003c');
  return page.replace('"REPORT"', () => data);
}
