import { InvalidOptionError } from './errors.js';

/** @throws InvalidOptionError where what an option has to be does not hold. */
export function ensure(holds: boolean, option: string, must: string): void {
  if (!holds) throw new InvalidOptionError(option, must);
}

/** What was given, without its value: that may be anything. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'number') return `the number ${value}`;
  if (Array.isArray(value)) return 'a list';
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
}

/** Options that belong somewhere else, and where. */
export interface Elsewhere {
  readonly names: readonly string[];
  /** Follows the name in the message. */
  readonly belongs: (name: string) => string;
}

/** Refuses options that are not an object, and unknown options. @throws InvalidOptionError */
export function checkNames(what: string, options: unknown, known: readonly string[], elsewhere?: Elsewhere): void {
  if (typeof options === 'function') {
    throw new InvalidOptionError(what, 'must be an object, and is a function, which this call does not take.');
  }
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new InvalidOptionError(what, `must be an object. There are ${known.join(', ')}.`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  if (elsewhere?.names.includes(unknown)) throw new InvalidOptionError(unknown, elsewhere.belongs(unknown));
  const meant = nearest(unknown, [...known, ...(elsewhere?.names ?? [])]);
  const belongs = meant !== undefined && !known.includes(meant) ? ` \`${meant}\` ${elsewhere?.belongs(meant)}` : '';
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?${belongs}`;
  throw new InvalidOptionError(unknown, `is not an option here.${hint} There are ${known.join(', ')}.`);
}

/** So many letters make a shorter name similar to one that begins with them; with fewer, all of them do. */
const BEGINNING = 4;
const LEAST_BEGINNING = 3;

/** The name that was most likely mistyped as `given`; `undefined` if none is similar. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const most = Math.floor(given.length / 3);
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of names) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase());
    if (distance <= most && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { name, distance };
  }
  if (best) return best.name;
  const beginning = given.slice(0, BEGINNING).toLowerCase();
  if (beginning.length < LEAST_BEGINNING) return undefined;
  return names.find((name) => name.length >= given.length && name.toLowerCase().startsWith(beginning));
}

/** How many letters have to be added, taken away or replaced (Levenshtein). */
function editDistance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...one].entries()) {
    const line = [row + 1];
    for (const [column, otherLetter] of [...other].entries()) {
      const replaced = (above[column] as number) + (letter === otherLetter ? 0 : 1);
      line.push(Math.min(replaced, (above[column + 1] as number) + 1, (line[column] as number) + 1));
    }
    above = line;
  }
  return above[other.length] as number;
}
