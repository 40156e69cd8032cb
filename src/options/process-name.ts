import { hostname } from 'node:os';
import { InvalidOptionError } from '../base/errors.js';

/** It stands in the value of every lease, and in messages. */
const MOST_BYTES = 100;
/** Letters, digits and signs, with single spaces of the plain kind between them: nothing that a terminal would obey or hide. */
const VISIBLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]+(?: [\p{L}\p{M}\p{N}\p{P}\p{S}]+)*$/u;

/** What other processes are told of this one. @throws InvalidOptionError */
export function processName(given: unknown): string {
  if (given === undefined) return defaultName();
  if (typeof given === 'string' && VISIBLE.test(given) && Buffer.byteLength(given) <= MOST_BYTES) return given;
  throw new InvalidOptionError(
    'name',
    `must be a text of 1 to ${MOST_BYTES} bytes of visible characters, with single spaces between them at most.`,
  );
}

/** The name of a machine is anything that its administrator chose. */
function defaultName(): string {
  const host = hostname().replace(/[^A-Za-z0-9._-]/g, '?') || '?';
  return `${host.slice(0, MOST_BYTES - 20)}:${process.pid}`;
}
