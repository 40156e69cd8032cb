import { InsideTransactionError, InvalidOptionError } from '../../base/errors.js';
import type { PermitOptions } from '../../index.js';
import { checkPermits } from '../../options/arguments.js';
import { type ArgsOf, type Inferred, type KeyOf, toKeys } from './key-of.js';
import { checkClient, checkOptions, type TryWithLockOptions, type WithLockOptions } from './options.js';

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>;

/** What a method of mode `try` must be able to resolve to, beside its own results. */
interface NotNow {
  readonly acquired: false;
}

type ResultFits<Mode, Result> = Mode extends 'try'
  ? NotNow extends Result
    ? unknown
    : { readonly 'a method of mode try resolves to { acquired: false } as well: declare Promise<TryResult<…>>': never }
  : unknown;

/** A decorator of methods: of the standard's kind, and of TypeScript's own (`experimentalDecorators`, Nest). */
export interface LockDecorator<Key extends KeyOf, Mode extends 'wait' | 'try', Self> {
  <This extends Self & ThisParameterType<Key>, Args extends ArgsOf<Key>, Result>(
    method: ((this: This, ...args: Args) => Promise<Result>) & Inferred<Args, ArgsOf<Key>> & ResultFits<Mode, Result>,
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Args) => Promise<Result>>,
  ): void;
  <This extends Self & ThisParameterType<Key>, Args extends ArgsOf<Key>, Result>(
    target: This,
    name: string | symbol,
    descriptor: { readonly value?: (...args: Args) => Promise<Result> } & Inferred<Args, ArgsOf<Key>> &
      ResultFits<Mode, Result>,
  ): void;
}

/**
 * Runs a method under a lock: each call as the function of `$withLock`, in one transaction, whose client is
 * `currentTx(this.prisma)` in the method and in all that it calls and awaits.
 *
 * With `mode: 'try'` a call does not wait, and resolves to `{ acquired: false }` where somebody else has the key.
 *
 * @param key a key with or without placeholders (`stock:{0}`, `stock:{0.id}`), several, or a function of the arguments.
 *   Nothing is added to it: methods with the same key exclude each other, of whichever class.
 * @throws InvalidOptionError when the class is defined, for what can be seen then; a call rejects as `$withLock` does.
 */
export function WithLock<const Key extends KeyOf, Self = unknown>(
  key: Key,
  options?: WithLockOptions<Self>,
): LockDecorator<Key, 'wait', Self>;
export function WithLock<const Key extends KeyOf, Self = unknown>(
  key: Key,
  options: TryWithLockOptions<Self>,
): LockDecorator<Key, 'try', Self>;
export function WithLock(key: KeyOf, options: WithLockOptions | TryWithLockOptions = {}): unknown {
  return lockMethod(key, options);
}

/**
 * Runs a method as one of at most so many at a time: each call as the function of `$withPermit`. `currentLock()` says which
 * permit it has. Otherwise as `WithLock`.
 *
 * @param key as of `WithLock`, and one alone.
 */
export function WithPermit<const Key extends KeyOf, Self = unknown>(
  key: Key,
  of: PermitOptions,
  options?: WithLockOptions<Self>,
): LockDecorator<Key, 'wait', Self>;
export function WithPermit<const Key extends KeyOf, Self = unknown>(
  key: Key,
  of: PermitOptions,
  options: TryWithLockOptions<Self>,
): LockDecorator<Key, 'try', Self>;
export function WithPermit(key: KeyOf, of: PermitOptions, options: WithLockOptions | TryWithLockOptions = {}): unknown {
  return lockMethod(key, options, undefined, of);
}

/** `WithLock`, or `WithPermit` of so many. `byDefault`: where the client is from without the option `client`. */
export function lockMethod(
  key: KeyOf,
  options: WithLockOptions | TryWithLockOptions,
  byDefault = (self: unknown): unknown => (self as { readonly prisma?: unknown } | null | undefined)?.prisma,
  of?: PermitOptions,
): (target: unknown, given: unknown, descriptor?: PropertyDescriptor) => unknown {
  const keysOf = toKeys(key);
  const { mode, client: clientOf = byDefault, lock } = checkOptions(options);
  if (of !== undefined) checkPermits('key', of, '$withPermit');
  const verb = `${mode === 'try' ? '$tryWith' : '$with'}${of === undefined ? 'Lock' : 'Permit'}` as const;
  return decorator((method, name) => {
    return async function (this: unknown, ...args: unknown[]): Promise<unknown> {
      const locking = checkClient(clientOf(this), name) as unknown as Record<typeof verb, LockVerb>;
      let hasBegun = false;
      const work = () => {
        hasBegun = true;
        return Reflect.apply(method, this, args);
      };
      const given = [keysOf(this, args), ...(of === undefined ? [] : [of]), work, lock];
      const result = await locking[verb](...given).catch((error: unknown) => {
        // Behind that, it is the error of a call that the method has made.
        throw !hasBegun && error instanceof InsideTransactionError ? insideTransaction(error, name) : error;
      });
      if (mode === 'wait') return result;
      // The method says `acquired: true` itself: its type cannot be changed from here.
      const tried = result as { readonly acquired: boolean; readonly value?: unknown };
      return tried.acquired ? tried.value : tried;
    };
  });
}

/** The refusal of a call inside a transaction, for somebody who has written decorators and no call. */
function insideTransaction({ key }: InsideTransactionError, method: string): InsideTransactionError {
  return new InsideTransactionError(
    `\`${method}\`, which has \`@WithLock\`, was called inside a transaction, such as that of \`@Transactional()\` above ` +
      '`@WithLock`, or its client is that of a transaction. It would wait for the lock while the transaction holds a connection ' +
      'and rows. Write `@WithLock(…)` above `@Transactional()`, and call the method outside of any transaction.',
    { key, page: 'locks.md#a-lock-inside-a-plain-transaction' },
  );
}

type LockVerb = (...given: readonly unknown[]) => Promise<unknown>;

/** Both kinds of decorators, told apart by their second argument. */
function decorator(lock: (method: Method, name: string) => Method) {
  return (target: unknown, given: unknown, descriptor?: PropertyDescriptor): unknown => {
    const isStandard = typeof given === 'object' && given !== null && 'kind' in given;
    const named: unknown = isStandard ? (given as { readonly name?: unknown }).name : given;
    const name = typeof named === 'symbol' ? (named.description ?? 'a method') : String(named);
    const method: unknown = isStandard ? target : descriptor?.value;
    if (typeof method !== 'function' || (isStandard && given.kind !== 'method')) {
      throw new InvalidOptionError('WithLock', `stands at ${name}, which is no method: a field cannot be locked.`);
    }
    if (/Generator/.test(Object.prototype.toString.call(method))) {
      throw new InvalidOptionError(
        'WithLock',
        `stands at ${name}, a generator: it must be a plain or an async method.`,
      );
    }
    const locked = alike(lock(method as Method, name), method as Method);
    return isStandard ? locked : { ...descriptor, value: locked };
  };
}

interface Metadata {
  getOwnMetadataKeys?(target: object): readonly unknown[];
  getOwnMetadata?(key: unknown, target: object): unknown;
  defineMetadata?(key: unknown, value: unknown, target: object): void;
}

/** Gives the locked method what others look for at the one beneath it: name, length, properties and metadata. */
function alike(locked: Method, method: Method): Method {
  for (const name of Reflect.ownKeys(method)) {
    if (name === 'prototype' || name === 'arguments' || name === 'caller') continue;
    Object.defineProperty(locked, name, Object.getOwnPropertyDescriptor(method, name) as PropertyDescriptor);
  }
  // Of reflect-metadata, where the application has it.
  const { getOwnMetadataKeys, getOwnMetadata, defineMetadata } = Reflect as Metadata;
  for (const key of getOwnMetadataKeys?.(method) ?? []) defineMetadata?.(key, getOwnMetadata?.(key, method), locked);
  return locked;
}
