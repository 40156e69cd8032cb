import { median, quantile } from 'simple-statistics';

export interface Summary {
  readonly median: number;
  readonly p99: number;
  readonly least: number;
  readonly most: number;
}

export function summary(numbers: readonly number[]): Summary {
  if (numbers.length === 0) return { median: Number.NaN, p99: Number.NaN, least: Number.NaN, most: Number.NaN };
  const sample = [...numbers];
  return { median: median(sample), p99: quantile(sample, 0.99), least: Math.min(...sample), most: Math.max(...sample) };
}

/** The middle half, as text. */
export function spread(numbers: readonly number[], digits: number): string {
  if (numbers.length === 0) return '';
  const [low, high] = quantile([...numbers], [0.25, 0.75]) as unknown as [number, number];
  return `${low.toFixed(digits)}–${high.toFixed(digits)}`;
}
