import { hostname } from 'node:os';
import { InvalidOptionError } from '../base/errors.js';
import { hasInvisible } from '../base/invisible.js';

/** It stands in the value of every lease, and in messages. */
const MOST_BYTES = 100;
/** Single spaces at most, and none around it. */
const SPACED = /^[^ ]+(?: [^ ]+)*$/;

/** What other processes are told of this one. @throws InvalidOptionError */
export function processName(given: unknown): string {
  if (given === undefined) return defaultName();
  if (
    typeof given === 'string' &&
    Buffer.byteLength(given) <= MOST_BYTES &&
    SPACED.test(given) &&
    !hasInvisible(given)
  ) {
    return given;
  }
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
