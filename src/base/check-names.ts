import { InvalidOptionError } from './errors.js';

/** Refuses what is no object of options, and an option that is not known. @throws InvalidOptionError */
export function checkNames(what: string, options: unknown, known: readonly string[]): void {
  if (typeof options === 'function') {
    throw new InvalidOptionError(what, 'must be an object, and is a function, which this call does not take.');
  }
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new InvalidOptionError(what, 'must be an object.');
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new InvalidOptionError(unknown, `is not an option here; there are ${known.join(', ')}.`);
  }
}
