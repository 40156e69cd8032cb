import { InvalidOptionError } from '../../../base/errors.js';
import { heldKey, holds } from '../../../base/held-keys.js';
import type { Work } from '../../../call/lock.js';
import type { LockOptions, OnceOptions, ResolvedLockOptions } from '../../../options/options.js';
import {
  checkKey,
  checkKeys,
  checkParts,
  checkSeen,
  checkState,
  checkWork,
  resolveLockOptions,
  resolveSchedule,
  type Verb,
} from '../../../options/validate-call.js';
import { refuseInsideLock, refuseInsideTransaction } from '../../../prisma/inside-transaction.js';
import type { FakeCall } from './calls.js';
import { lock, resume } from './handle.js';
import { functionOf, isObject } from './mock.js';
import { oncePer } from './once-per.js';
import { forceRelease, inspect } from './operators.js';
import type { FakeLockCall, FakeParts } from './parts.js';
import { tryWithLock, withLock } from './with-lock.js';

interface MethodsOptions {
  readonly defaults: ResolvedLockOptions;
  readonly unsetKeyParts: 'throw' | 'allow';
}

/** The methods that a fake adds to the client. They check their arguments in the order in which the real ones do. */
export function methodsOf(parts: FakeParts, { defaults, unsetKeyParts }: MethodsOptions): object {
  const keysOf = (key: unknown, verb?: Verb): readonly string[] => {
    const keys = checkKeys(key, verb);
    if (unsetKeyParts === 'throw') checkParts(keys);
    return keys;
  };
  /** @throws InvalidOptionError, InsideTransactionError */
  const check = (
    self: unknown,
    method: FakeCall['method'],
    keys: readonly string[],
    given: LockOptions,
  ): FakeLockCall => {
    if (!isObject(self)) {
      throw new InvalidOptionError('this', `must be the client: call it as \`prisma.${method}(…)\`.`);
    }
    const options = resolveLockOptions(given, defaults);
    if (options.nested === 'throw' && heldKey() === undefined) refuseInsideTransaction(method, keys[0]);
    return { method, client: self, keys, options, given };
  };
  /** Calls the method of the mock, if it has one. */
  const own = (method: '$connect' | '$disconnect'): unknown => functionOf(parts.base, method)?.();
  const look = (key: string) => inspect(parts, key, defaults.leaseTime);
  return {
    async $withLock(this: unknown, key: unknown, fn: Work<object, unknown>, options: LockOptions = {}) {
      const keys = keysOf(key, '$withLock');
      checkWork(fn, '$withLock');
      return await withLock(parts, check(this, '$withLock', keys, options), fn);
    },
    async $tryWithLock(this: unknown, key: unknown, fn: Work<object, unknown>, options: LockOptions = {}) {
      const keys = keysOf(key, '$tryWithLock');
      checkWork(fn, '$tryWithLock');
      const call = check(this, '$tryWithLock', keys, options);
      if ('waitTime' in options) {
        throw new InvalidOptionError('waitTime', 'is not allowed for $tryWithLock, which does not wait.');
      }
      return await tryWithLock(parts, call, fn);
    },
    async $oncePer(
      this: unknown,
      key: unknown,
      interval: unknown,
      fn: Work<object, unknown>,
      options: OnceOptions = {},
    ) {
      const keys = keysOf(checkKey(key));
      checkWork(fn, '$oncePer');
      const { schedule, rest } = resolveSchedule(interval, options);
      return await oncePer(parts, check(this, '$oncePer', keys, rest), schedule, fn);
    },
    async $lock(this: unknown, key: unknown, options: LockOptions = {}) {
      return await lock(parts, check(this, '$lock', keysOf(key, '$lock'), options));
    },
    async $resumeLock(this: unknown, state: unknown, options: LockOptions = {}) {
      const checked = checkState(state);
      const call = check(this, '$resumeLock', checked.keys, options);
      if ('leaseTime' in options) {
        throw new InvalidOptionError('leaseTime', 'cannot be changed by $resumeLock. Leave it out.');
      }
      return await resume(parts, call, checked);
    },
    $locks: {
      inspect: async (key: unknown) => look(checkKey(key)),
      list: async () => parts.turns.keys.map(look),
      history: async (key: unknown) => ({ key, turns: look(checkKey(key)).turns, recorded: false, last: [] }),
      forceRelease: async (key: unknown, seen?: unknown) => {
        const checked = checkKey(key);
        const checkedSeen = checkSeen(seen);
        refuseInsideLock('$locks.forceRelease', holds(checked) ? checked : undefined);
        return forceRelease(parts, checked, checkedSeen);
      },
      close: async () => {
        refuseInsideLock('$locks.close', heldKey());
        await parts.close();
      },
    },
    $connect: async () => {
      await own('$connect');
    },
    $disconnect: async () => {
      refuseInsideLock('$disconnect', heldKey());
      await parts.close(() => own('$disconnect'));
    },
  };
}
