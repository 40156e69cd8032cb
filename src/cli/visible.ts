import { hasInvisible, INVISIBLE } from '../base/invisible.js';

/** A text that needs no quotes to be told apart from its surroundings. */
const PLAIN = /^[^ "\\]+$/u;

/** A text from elsewhere, on one line: unchanged, or as a JSON string if it could mislead. */
export function visible(text: string): string {
  return PLAIN.test(text) && !hasInvisible(text) ? text : escapeInvisible(JSON.stringify(text));
}

/** Escapes the characters that a terminal would interpret. Line breaks of the JSON stay. */
export function escapeInvisible(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replace(INVISIBLE, (character) =>
    character === '\n' ? character : character.split('').map(escaped).join(''),
  );
}

/** A longer cell is ignored for the column's width: only its own line is shifted. */
const WIDEST = 48;

/** Formats rows as lines with aligned columns. */
export function columns(rows: ReadonlyArray<readonly string[]>): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, { length }] of row.entries()) {
      if (length <= WIDEST) widths[at] = Math.max(widths[at] ?? 0, length);
    }
  }
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
