import { InvalidOptionError } from '../../base/errors.js';
import { checkKey } from '../../options/validate-call.js';
import { Misuse } from '../problem.js';

/** A key, as it was given on the command line. @throws Misuse */
export function checkedKey(key: string): string {
  try {
    return checkKey(key);
  } catch (error) {
    throw error instanceof InvalidOptionError ? new Misuse(error.message) : error;
  }
}
