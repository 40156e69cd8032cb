import { InvalidOptionError } from '../../base/errors.js';
import type { LockOptions, TryLockOptions } from '../../index.js';
import { CALL_DEFAULTS } from '../../options/options.js';
import { resolveLockOptions } from '../../options/resolve.js';

/** A Prisma client that is extended by fencedLock, as far as a decorator uses it. */
export interface LockingClient {
  $withLock(key: never, fn: never, options?: never): Promise<unknown>;
  $tryWithLock(key: never, fn: never, options?: never): Promise<unknown>;
}

interface From<This> {
  /** Gives the client, from the object that the method is called on. Default: its `prisma`. */
  readonly client?: ((self: This) => LockingClient) | undefined;
}

/** Of a method that waits for its lock. */
export interface WithLockOptions<This = never> extends LockOptions, From<This> {
  /** `wait`: as `$withLock`. `try`: as `$tryWithLock`, which does not wait. Default: `wait`. */
  readonly mode?: 'wait' | undefined;
}

/** Of a method that does not wait: where somebody else has the key, it resolves to `{ acquired: false }`. */
export interface TryWithLockOptions<This = never> extends TryLockOptions, From<This> {
  readonly mode: 'try';
}

/** @throws InvalidOptionError when the class is defined, and not only when the method is called. */
export function checkOptions(options: WithLockOptions | TryWithLockOptions) {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError('options', 'of WithLock must be an object.');
  }
  // The options of the lock go to each call, and the client's own defaults fill in the rest.
  const { mode = 'wait', client, ...lock } = options;
  if (mode !== 'wait' && mode !== 'try') throw new InvalidOptionError('mode', "must be 'wait' or 'try'.");
  if (mode === 'try' && 'waitTime' in lock) {
    throw new InvalidOptionError('waitTime', "has no place beside `mode: 'try'`, which does not wait.");
  }
  if (client !== undefined && typeof client !== 'function') {
    throw new InvalidOptionError('client', 'must be a function that gives it, such as (self) => self.database.');
  }
  resolveLockOptions(lock, CALL_DEFAULTS);
  return { mode, client: client as ((self: unknown) => unknown) | undefined, lock };
}

/** @throws InvalidOptionError */
export function checkClient(client: unknown, method: string): LockingClient {
  const { $withLock, $tryWithLock } = (client ?? {}) as Partial<LockingClient>;
  if (typeof $withLock === 'function' && typeof $tryWithLock === 'function') return client as LockingClient;
  throw new InvalidOptionError(
    'client',
    client == null
      ? `of the locked method ${method} is missing. Call it on an object that has it as \`prisma\`, or give the option ` +
          '`client: (self) => …`. In Nest, call it on an object that Nest has made, and import the FencedLockModule of that name.'
      : `of the locked method ${method} is there, and is not extended by fencedLock. Give it what ` +
          'new PrismaClient(…).$extends(fencedLock(…)) returns, or in a unit test what fakeLocks(…) of ' +
          '`prisma-extension-fenced-lock/testing` returns.',
  );
}
