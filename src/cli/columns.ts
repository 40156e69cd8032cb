/** A cell longer than this pushes aside its own line alone. */
const WIDEST = 48;

/** Rows as lines, cell under cell. */
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
