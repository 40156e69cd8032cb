/** How many permits a key may have. */
export const MOST_PERMITS = 1_000;

/** What the name of a permit, or of any one of some, says. */
export interface PermitName {
  readonly key: string;
  /** The number of the permit; `undefined` for any one. */
  readonly permit: number | undefined;
  /** The permits that it may be. */
  readonly first: number;
  readonly last: number;
  /** It is taken only while fewer than this are. */
  readonly most: number;
}

const NAME = /^(.*) \[permit (of )?(\d{1,4})\]$/s;

/**
 * The name of a permit, by which Postgres has its row and everybody knows its lease: `imports [permit 2]`. No key of a caller
 * ends like that.
 */
export function permitName(key: string, permit: number): string {
  return `${key} [permit ${permit}]`;
}

/** The name of any one of so many permits, which callers wait for: `imports [permit of 3]`. */
export function anyPermit(key: string, permits: number): string {
  return `${key} [permit of ${permits}]`;
}

/** Reads such a name; `undefined` for any other key. */
export function permitOf(name: string): PermitName | undefined {
  // Every call of a lock passes here.
  if (!name.endsWith(']')) return undefined;
  const [, key = '', isAny, digits] = NAME.exec(name) ?? [];
  if (digits === undefined) return undefined;
  const number = Number(digits);
  if (isAny === undefined) return { key, permit: number, first: number, last: number, most: MOST_PERMITS };
  return { key, permit: undefined, first: 0, last: number - 1, most: number };
}
