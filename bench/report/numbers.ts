import type { Cell } from './result.js';

/** Three digits that matter, as one reads them. */
export function shown(cell: Cell): string {
  if (typeof cell === 'string') return cell;
  if (Number.isNaN(cell)) return '–';
  const size = Math.abs(cell);
  if (Number.isInteger(cell) || size >= 1_000) return Math.round(cell).toLocaleString('en');
  return cell.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}
