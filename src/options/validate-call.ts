import { checkNames, type Elsewhere } from '../base/check-names.js';
import { LONGEST_TIME } from '../base/clock.js';
import { InvalidOptionError, quoted } from '../base/errors.js';
import type {
  FencedLockOptions,
  HandleState,
  LockOptions,
  OnceOptions,
  ResolvedLockOptions,
  Schedule,
  SeenState,
  TransactionOptions,
} from './options.js';

const LONGEST_KEY = 512;
const MOST_KEYS = 100;
/** The shortest lease that a renewal at a third of its time can keep over a network; milliseconds. */
const SHORTEST_LEASE = 100;
/** A shorter one is over before its callers have been answered. */
const SHORTEST_INTERVAL = 100;
const MOST_RETRIES = 100;

type Checks<Options> = { readonly [Name in keyof Options]-?: (value: Exclude<Options[Name], undefined>) => unknown };

/** What each option of a call has to be, for a value that is given. */
const OF_EACH_CALL: Checks<LockOptions> = {
  waitTime: (value) => time('waitTime', value, 0),
  leaseTime: (value) => time('leaseTime', value, SHORTEST_LEASE),
  renew: (value) => is(typeof value === 'boolean', 'renew', value, 'must be true or false.'),
  timeout: (value) => time('timeout', value, 1),
  signal: (value) => is(value instanceof AbortSignal, 'signal', value, 'must be an AbortSignal.'),
  reentry: (value) => choice('reentry', value, ['join', 'throw']),
  nested: (value) => choice('nested', value, ['throw', 'allow']),
  retries: (value) => count('retries', value, MOST_RETRIES),
  hookErrors: (value) => choice('hookErrors', value, ['event', 'throw']),
  isolationLevel: (value) =>
    choice('isolationLevel', value, ['ReadUncommitted', 'ReadCommitted', 'RepeatableRead', 'Serializable']),
  maxWait: (value) => time('maxWait', value, 1),
};
const LOCK_OPTION_NAMES = Object.keys(OF_EACH_CALL) as (keyof LockOptions)[];
const NOT_IN_A_HANDLE: readonly string[] = ['leaseTime', 'renew', 'reentry'];
const NOT_ONCE: readonly string[] = ['waitTime', 'reentry'];
const TRANSACTION_OPTION_NAMES = LOCK_OPTION_NAMES.filter((name) => !NOT_IN_A_HANDLE.includes(name));
const ONCE_OPTION_NAMES = ['atLeast', 'offset', ...LOCK_OPTION_NAMES.filter((name) => !NOT_ONCE.includes(name))];

/** The options of the client. One that is missing here does not compile. */
const CLIENT_OPTIONS: Readonly<Record<keyof FencedLockOptions, true>> = {
  redis: true,
  wake: true,
  pollInterval: true,
  rescue: true,
  name: true,
  keyPrefix: true,
  fenceField: true,
  models: true,
  commandTimeout: true,
  fairness: true,
  passOnAfter: true,
  onRedisUnavailable: true,
  unsetKeyParts: true,
  defaults: true,
  onEvent: true,
};
export const OPTION_NAMES = Object.keys(CLIENT_OPTIONS);

/** What each call takes, in which order. */
const ARGUMENTS = {
  $withLock: '$withLock(key, fn, options)',
  $tryWithLock: '$tryWithLock(key, fn, options)',
  $oncePer: '$oncePer(key, interval, fn, options)',
  $lock: '$lock(key, options)',
  $transaction: '$transaction(fn, options)',
} as const;
export type Verb = keyof typeof ARGUMENTS;

/** Of an argument whose type is that of another one. */
const inOrder = (verb: Verb) => `The arguments are \`${ARGUMENTS[verb]}\`, in this order.`;

/** What somebody gives to a call, or to `defaults`, that holds for the client. */
const OF_THE_CLIENT: Elsewhere = {
  names: OPTION_NAMES,
  belongs: (name) => `is an option of the client, and not of a call: write \`fencedLock({ ${name}: … })\`.`,
};

/** What somebody gives to the client that holds for a call. */
export const OF_A_CALL: Elsewhere = {
  names: LOCK_OPTION_NAMES,
  belongs: (name) =>
    `is an option of a call: give it to the call, or write \`defaults: { ${name}: … }\` here, which holds for all calls.`,
};

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
    return Object.freeze([...unique].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
  }
  if (verb !== undefined && (typeof keys === 'function' || (typeof keys === 'object' && keys !== null))) {
    throw new InvalidOptionError('key', `${problemOf(keys)} ${inOrder(verb)}`);
  }
  return Object.freeze([checkKey(keys)]);
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

/** What was given, without its value: that may be anything. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'number') return `the number ${value}`;
  if (Array.isArray(value)) return 'a list';
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
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

const IF_MEANT = "If it is meant, set `unsetKeyParts: 'allow'` in the options of fencedLock.";

/** What a template leaves of a key that stands in quotation marks, and not between backticks. */
const UNFILLED = /\$\{[^}]*\}/;

/** What an empty value leaves of a key; `undefined` if nothing looks like one. `a::b` is a key that people mean. */
function emptyPart(key: string): string | undefined {
  if (key !== key.trim()) return 'begins or ends with white space';
  return key.endsWith(':') ? 'ends with ":"' : undefined;
}

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
    const empty = emptyPart(key);
    if (unset === undefined && empty === undefined) continue;
    const what = unset === undefined ? `${empty}, as if a value were empty` : `"${unset}" stands where a value should`;
    throw new InvalidOptionError('key', `is ${quoted(key)}, and ${what}: look at what the key is made of. ${IF_MEANT}`);
  }
}

/** @throws InvalidOptionError */
export function checkWork(work: unknown, verb: Verb): void {
  if (typeof work !== 'function') {
    throw new InvalidOptionError(
      'fn',
      `must be a function that is given the client of the transaction, not ${kindOf(work)}. ${inOrder(verb)}`,
    );
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
    'must be the state of the key that you have seen, as `$locks.inspect(key)` gives it: { holder }.',
  );
}

/** Checks the options of a handle's transaction. @throws InvalidOptionError */
export function resolveTransactionOptions(
  options: TransactionOptions,
  defaults: ResolvedLockOptions,
): ResolvedLockOptions {
  checkNames('options', options, TRANSACTION_OPTION_NAMES);
  return resolveLockOptions(options, defaults);
}

/** Takes what says when a job runs from the options of `$oncePer`. @throws InvalidOptionError */
export function resolveSchedule(given: unknown, options: OnceOptions): { schedule: Schedule; rest: LockOptions } {
  const interval = time('interval', given, SHORTEST_INTERVAL);
  checkNames('options', options, ONCE_OPTION_NAMES);
  const { atLeast = 0, offset = 0, ...rest } = options;
  const within = { atLeast: time('atLeast', atLeast, 0, interval), offset: time('offset', offset, 0, interval - 1) };
  return { schedule: { interval, ...within }, rest };
}

/** Checks the options of a call. @throws InvalidOptionError */
export function resolveLockOptions(options: LockOptions, defaults: ResolvedLockOptions): ResolvedLockOptions {
  checkNames('options', options, LOCK_OPTION_NAMES, OF_THE_CLIENT);
  const given = Object.entries(options).filter(([, value]) => value != null);
  if (given.length === 0) return defaults;
  const resolved: Record<string, unknown> = { ...defaults };
  for (const [name, value] of given) resolved[name] = OF_EACH_CALL[name as keyof LockOptions](value as never);
  return resolved as unknown as ResolvedLockOptions;
}

/** Whether a lease time is one that this package allows. */
function isLeaseTime(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= SHORTEST_LEASE && (value as number) <= LONGEST_TIME;
}

export function choice<const Choice extends string>(name: string, value: Choice, choices: readonly Choice[]): Choice {
  if (choices.includes(value)) return value;
  throw new InvalidOptionError(name, `must be ${choices.map((one) => `'${one}'`).join(' or ')}.`);
}

/** @throws InvalidOptionError where it is not. */
export function is<Value>(holds: boolean, name: string, value: Value, must: string): Value {
  if (holds) return value;
  throw new InvalidOptionError(name, must);
}

function count(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new InvalidOptionError(name, `must be a whole number from 0 to ${most}, not ${kindOf(value)}.`);
}

export function time(name: string, value: unknown, least: number, most = LONGEST_TIME): number {
  // Rounded, because Redis accepts integers only, and callers often compute the rest of a time with fractions.
  if (typeof value === 'number' && value >= least && value <= most) return Math.round(value);
  const instead = value === Number.POSITIVE_INFINITY ? ` Instead of Infinity give the largest value, ${most}.` : '';
  const range = `a number of milliseconds from ${least} to ${most}`;
  throw new InvalidOptionError(name, `must be ${range}, not ${kindOf(value)}.${instead}`);
}
