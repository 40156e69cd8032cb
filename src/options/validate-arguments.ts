import { InvalidOptionError, quoted } from '../base/errors.js';
import type { HandleState } from './options.js';
import { isLeaseTime } from './validate-options.js';

const LONGEST_KEY = 512;
const MOST_KEYS = 100;

/**
 * One key or several, sorted by their bytes and without duplicates: all who want the same ones take them in one order.
 *
 * @throws InvalidOptionError
 */
export function checkKeys(keys: unknown): readonly string[] {
  if (!Array.isArray(keys)) return Object.freeze([checkKey(keys)]);
  if (keys.length === 0 || keys.length > MOST_KEYS) {
    throw new InvalidOptionError('key', `must be one key, or 1 to ${MOST_KEYS} of them.`);
  }
  // Not map, which leaves out holes.
  const unique = new Set(Array.from(keys, checkKey));
  return Object.freeze([...unique].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
}

/** A key is 1 to 512 bytes of UTF-8 without NUL, which Postgres cannot store. @throws InvalidOptionError */
export function checkKey(key: unknown): string {
  if (typeof key !== 'string') throw new InvalidOptionError('key', `must be a string, not ${typeof key}.`);
  if (key === '') throw new InvalidOptionError('key', 'must not be empty: name what is locked, such as "stock:1".');
  // Before the bytes are counted: a string of megabytes is refused by its length alone.
  if (key.length > LONGEST_KEY || Buffer.byteLength(key) > LONGEST_KEY) {
    throw new InvalidOptionError('key', `must not be longer than ${LONGEST_KEY} bytes of UTF-8: use an id, or a hash.`);
  }
  if (key.includes('\0')) throw new InvalidOptionError('key', 'must not contain NUL: Postgres cannot store it.');
  if (!key.isWellFormed()) throw new InvalidOptionError('key', 'must be well-formed: it has a lone surrogate.');
  return key;
}

/** What a template makes of a value that is not there, as a part of a key or at its end. */
const UNSET =
  /(?:^|[^\p{L}\p{N}])((?:undefined|NaN)(?=$|[^\p{L}\p{N}\s])|null(?=$|[:/|,;#]))|(undefined)$|(\[object \w+\])/u;

/**
 * Refuses a key such as `stock:undefined`: all who make the same mistake would wait for each other, and nobody for whom they
 * mean.
 *
 * @throws InvalidOptionError
 */
export function checkParts(keys: readonly string[]): void {
  for (const key of keys) {
    const [, part = undefined, suffix = undefined, object = undefined] = UNSET.exec(key) ?? [];
    const unset = part ?? suffix ?? object;
    if (unset === undefined) continue;
    throw new InvalidOptionError(
      'key',
      `is ${quoted(key)}, and "${unset}" stands where a value should: look at what the key is made of. If it is meant, set ` +
        "`unsetKeyParts: 'allow'` in the options of fencedLock.",
    );
  }
}

/** @throws InvalidOptionError */
export function checkWork(work: unknown): void {
  if (typeof work !== 'function') {
    throw new InvalidOptionError('fn', 'must be a function that is given the client of the transaction.');
  }
  refuseGenerator(work);
}

/** A hook of a lock. @throws InvalidOptionError */
export function checkHook(hook: unknown): void {
  if (typeof hook !== 'function')
    throw new InvalidOptionError('fn', 'must be a function that runs when the outcome is known.');
  refuseGenerator(hook);
}

/** It would run nothing, and look like a success. */
function refuseGenerator(fn: unknown): void {
  if (!/Generator/.test(Object.prototype.toString.call(fn))) return;
  throw new InvalidOptionError('fn', 'must be a plain or an async function, and is a generator.');
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TOKEN = /^[1-9][0-9]{0,18}$/;
/** Of Postgres' bigint. */
const HIGHEST_TOKEN = 2n ** 63n - 1n;

/** What `toJSON` of a handle gave, after its journey. @throws InvalidOptionError */
export function checkState(state: unknown): HandleState {
  const { keys, tokens, holders, leaseTime } = (state ?? {}) as Partial<Record<keyof HandleState, unknown>>;
  const isList = (value: unknown, shape: RegExp, length: number): value is string[] =>
    Array.isArray(value) && value.length === length && value.every((one) => typeof one === 'string' && shape.test(one));
  if (Array.isArray(keys)) {
    const checked = checkKeys(keys);
    const isSame = checked.length === keys.length && checked.every((key, index) => key === keys[index]);
    const isWhole = isSame && isList(tokens, TOKEN, keys.length) && isList(holders, UUID, keys.length);
    if (isWhole && tokens.every((token) => BigInt(token) <= HIGHEST_TOKEN) && isLeaseTime(leaseTime)) {
      return { keys: checked, tokens, holders, leaseTime };
    }
  }
  throw new InvalidOptionError(
    'state',
    'must be what `toJSON()` of a handle gave: { keys, tokens, holders, leaseTime }.',
  );
}
