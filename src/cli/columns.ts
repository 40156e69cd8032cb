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
