import { kindOf } from '../base/checks.js';
import { LONGEST_TIME } from '../base/clock.js';
import { InvalidOptionError, quoted } from '../base/errors.js';
import { anyPermit, MOST_PERMITS, permitOf } from '../base/permits.js';
import { type HandleState, type SeenState, SHORTEST_LEASE } from './options.js';

const LONGEST_KEY = 512;
const MOST_KEYS = 100;

/** What each call takes, in which order. */
const ARGUMENTS = {
  $withLock: '(key, fn, options)',
  $tryWithLock: '(key, fn, options)',
  $oncePer: '(key, interval, fn, options)',
  $lock: '(key, options)',
  $withPermit: '(key, { permits }, fn, options)',
  $tryWithPermit: '(key, { permits }, fn, options)',
  $permit: '(key, { permits }, options)',
  $transaction: '(fn, options)',
} as const;
export type Verb = keyof typeof ARGUMENTS;

/** Of an argument whose type is that of another one. */
const inOrder = (verb: Verb) => `The arguments are \`${ARGUMENTS[verb]}\`, in this order.`;

/**
 * One or several keys, sorted by their UTF-8 bytes and without duplicates: all callers take the same keys in the same
 * order, which rules out deadlocks.
 *
 * @param verb the call that they were given to, if that takes more than keys.
 * @throws InvalidOptionError
 */
export function checkKeys(keys: unknown, verb?: Verb): readonly string[] {
  if (Array.isArray(keys)) {
    if (keys.length === 0 || keys.length > MOST_KEYS) {
      throw new InvalidOptionError('key', `must be one key, or 1 to ${MOST_KEYS} of them.`);
    }
    // Array.from and not map, which skips holes.
    const unique = new Set(Array.from(keys, (key, at) => checkKey(key, at)));
    const sorted = [...unique].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    return Object.freeze(verb === undefined ? sorted : refusePermits(sorted));
  }
  if (verb !== undefined && (typeof keys === 'function' || (typeof keys === 'object' && keys !== null))) {
    throw new InvalidOptionError('key', `${problemOf(keys)} ${inOrder(verb)}`);
  }
  const one = [checkKey(keys)];
  return Object.freeze(verb === undefined ? one : refusePermits(one));
}

/** The name of a permit is what operators have of it. As a key, it would be another lock, which the permit does not know. */
function refusePermits(keys: string[]): string[] {
  const name = keys.find((key) => permitOf(key) !== undefined);
  if (name === undefined) return keys;
  throw new InvalidOptionError('key', `must not end as the name of a permit does, and is ${quoted(name)}.`);
}

/** Of the name of any one of the permits. */
const LONGEST_PERMIT = LONGEST_KEY - ' [permit of 1000]'.length;

/**
 * The name of any one of so many permits of a key.
 *
 * @throws InvalidOptionError
 */
export function checkPermits(given: unknown, of: unknown, verb: Verb): readonly string[] {
  const [key, another] = checkKeys(given, verb);
  if (another !== undefined) throw new InvalidOptionError('key', `must be one key. ${inOrder(verb)}`);
  if (Buffer.byteLength(key as string) > LONGEST_PERMIT) {
    throw new InvalidOptionError('key', `of permits must not be longer than ${LONGEST_PERMIT} bytes of UTF-8.`);
  }
  const { permits } = (of ?? {}) as { readonly permits?: unknown };
  if (!Number.isInteger(permits) || (permits as number) < 1 || (permits as number) > MOST_PERMITS) {
    const problem = `must say how many may be at work at a time: a whole number from 1 to ${MOST_PERMITS}.`;
    throw new InvalidOptionError('permits', `${problem} ${inOrder(verb)}`);
  }
  return Object.freeze([anyPermit(key as string, permits as number)]);
}

/** How nearly every key looks, so that nothing else of it need be checked: characters of one byte that are printed. */
const USUAL_KEY = new RegExp(`^[!-~]{1,${LONGEST_KEY}}$`);

/**
 * Checks a key: 1 to 512 bytes of UTF-8 without NUL, which Postgres cannot store.
 *
 * @param at its place, if it is one of several.
 * @throws InvalidOptionError
 */
export function checkKey(key: unknown, at?: number): string {
  if (typeof key === 'string' && USUAL_KEY.test(key)) return key;
  const problem = problemOf(key);
  if (problem !== undefined) {
    throw new InvalidOptionError('key', at === undefined ? problem : `${problem} This is \`key[${at}]\`.`);
  }
  return key as string;
}

function problemOf(key: unknown): string | undefined {
  if (typeof key !== 'string') {
    return `must be a string that names what is locked, such as "stock:1", not ${kindOf(key)}.`;
  }
  if (key === '') return 'must not be empty: name what is locked, such as "stock:1".';
  // Check the length first, so that the bytes of a very long string are not counted.
  if (key.length > LONGEST_KEY || Buffer.byteLength(key) > LONGEST_KEY) {
    return `must not be longer than ${LONGEST_KEY} bytes of UTF-8: use an id, or a hash.`;
  }
  if (key.includes('\0')) return 'must not contain NUL: Postgres cannot store it.';
  if (!key.isWellFormed()) return 'must be well-formed: it has a lone surrogate.';
  return undefined;
}

/** What a template makes of a missing value, as a whole part of a key. Words with a space or a hyphen between them are one part. */
const UNSET =
  /(?:^|[^\p{L}\p{N}])((?:undefined|NaN)(?![\p{L}\p{N}\s]|-\p{L})|null(?=$|[:/|,;#]))|(\[object \w+\]|Invalid Date)/u;

const IF_MEANT = "If it is meant, set the option `unsetKeyParts: 'allow'`.";

/** What a template leaves of a key that stands in quotation marks, and not between backticks. */
const UNFILLED = /\$\{[^}]*\}/;

/**
 * Refuses a key such as `stock:undefined` or `stock:`: callers with the same mistake would wait for each other, and not
 * for the callers of the intended key.
 *
 * @throws InvalidOptionError
 */
export function checkParts(keys: readonly string[]): void {
  for (const key of keys) {
    const unfilled = UNFILLED.exec(key)?.[0];
    if (unfilled !== undefined) {
      throw new InvalidOptionError(
        'key',
        `is ${quoted(key)}, and ${unfilled} was not filled in: write it between backticks. ${IF_MEANT}`,
      );
    }
    const found = UNSET.exec(key);
    const unset = found?.[1] ?? found?.[2];
    // `a::b` is a key that people mean.
    const isBlank = key !== key.trim();
    if (unset === undefined && !isBlank && !key.endsWith(':')) continue;
    const ends = isBlank ? 'begins or ends with white space' : 'ends with ":"';
    const what = unset === undefined ? `${ends}, as if a value were empty` : `"${unset}" stands where a value should`;
    throw new InvalidOptionError('key', `is ${quoted(key)}, and ${what}: look at what the key is made of. ${IF_MEANT}`);
  }
}

/**
 * The function of a call, or a hook of a lock, which has no verb. Not a generator: it would run nothing, and look like a
 * success.
 *
 * @throws InvalidOptionError
 */
export function checkFunction(fn: unknown, verb?: Verb): void {
  if (typeof fn !== 'function') {
    const what = verb === undefined ? 'runs when the outcome is known' : 'is given the client of the transaction';
    const order = verb === undefined ? '' : ` ${inOrder(verb)}`;
    throw new InvalidOptionError('fn', `must be a function that ${what}, not ${kindOf(fn)}.${order}`);
  }
  const { [Symbol.toStringTag]: kind } = fn as { readonly [Symbol.toStringTag]?: unknown };
  if (kind !== 'GeneratorFunction' && kind !== 'AsyncGeneratorFunction') return;
  throw new InvalidOptionError('fn', 'must be a plain or an async function, and is a generator.');
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TOKEN = /^[1-9][0-9]{0,18}$/;
/** The highest value of Postgres's bigint. */
const HIGHEST_TOKEN = 2n ** 63n - 1n;

/** Checks the result of a handle's `toJSON`, as received from another process. @throws InvalidOptionError */
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

/** Checks what an operator has seen of a key. @throws InvalidOptionError */
export function checkSeen(seen: unknown): SeenState | undefined {
  if (seen === undefined) return undefined;
  if (typeof seen === 'object' && seen !== null && 'holder' in seen) {
    const { holder } = seen;
    if (holder === undefined || typeof holder === 'string') return { holder };
  }
  throw new InvalidOptionError(
    'seen',
    'must be the state of the key that you have seen, as `inspect(key)` gives it: { holder }.',
  );
}

/** Whether a lease time is one that this package allows. */
function isLeaseTime(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= SHORTEST_LEASE && (value as number) <= LONGEST_TIME;
}
