import { Inject } from '@nestjs/common';
import { InvalidOptionError } from '../../base/errors.js';
import type { PermitOptions } from '../../index.js';
import type { KeyOf } from '../decorators/key-of.js';
import type { LockingClient, TryWithLockOptions, WithLockOptions } from '../decorators/options.js';
import { type LockDecorator, lockMethod } from '../decorators/with-lock.js';
import { getLockClientToken } from './injection-tokens.js';

/** `client`: the name of a FencedLockModule, or a function of the object that the method is called on. Default: the module without a name. */
type Injected<Options, Self> = Omit<Options, 'client'> & {
  readonly client?: string | ((self: Self) => LockingClient) | undefined;
};

/** Nest's own name for the metadata of injected properties. */
const PROPERTIES = 'self:properties_metadata';

/**
 * `WithLock` of `prisma-extension-fenced-lock/decorators`, on whose client Nest decides: the class need not have it. For
 * providers and controllers.
 *
 * Where Nest has not made the object, as in a unit test, its `prisma` is used instead of the client without a name.
 */
export function WithLock<const Key extends KeyOf, Self = unknown>(
  key: Key,
  options?: Injected<WithLockOptions<Self>, Self>,
): LockDecorator<Key, 'wait', Self>;
export function WithLock<const Key extends KeyOf, Self = unknown>(
  key: Key,
  options: Injected<TryWithLockOptions<Self>, Self>,
): LockDecorator<Key, 'try', Self>;
export function WithLock(key: KeyOf, options: Injected<WithLockOptions | TryWithLockOptions, never> = {}): unknown {
  return injected(key, options);
}

/** `WithPermit` of `prisma-extension-fenced-lock/decorators`, on whose client Nest decides, as for `WithLock`. */
export function WithPermit<const Key extends KeyOf, Self = unknown>(
  key: Key,
  of: PermitOptions,
  options?: Injected<WithLockOptions<Self>, Self>,
): LockDecorator<Key, 'wait', Self>;
export function WithPermit<const Key extends KeyOf, Self = unknown>(
  key: Key,
  of: PermitOptions,
  options: Injected<TryWithLockOptions<Self>, Self>,
): LockDecorator<Key, 'try', Self>;
export function WithPermit(
  key: KeyOf,
  of: PermitOptions,
  options: Injected<WithLockOptions | TryWithLockOptions, never> = {},
): unknown {
  return injected(key, options, of);
}

function injected(
  key: KeyOf,
  options: Injected<WithLockOptions | TryWithLockOptions, never>,
  of?: PermitOptions,
): unknown {
  const { client: name, ...others } = options ?? {};
  if (typeof name === 'function') return lockMethod(key, options as WithLockOptions, undefined, of);
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new InvalidOptionError('client', 'must be the name of a FencedLockModule, or a function that gives it.');
  }
  const token = getLockClientToken(name);
  const clientOf = (self: unknown) => {
    const own = (self ?? {}) as { readonly [property: symbol]: unknown; readonly prisma?: unknown };
    return own[token] ?? (name === undefined ? own.prisma : undefined);
  };
  const lock = lockMethod(key, others as WithLockOptions, clientOf, of);
  return (target: object, method: unknown, descriptor: PropertyDescriptor) => {
    if (typeof method !== 'string' && typeof method !== 'symbol') {
      throw new InvalidOptionError(
        'experimentalDecorators',
        'must be on for WithLock of prisma-extension-fenced-lock/nest, as for all of Nest. Without Nest, import it from ' +
          '`prisma-extension-fenced-lock/decorators`.',
      );
    }
    // A property of the object, under the token itself, which collides with nothing. Of a static method Nest makes no object.
    const { getMetadata } = Reflect as { getMetadata?(key: string, target: object): unknown };
    const known = (getMetadata?.(PROPERTIES, target.constructor) ?? []) as readonly { readonly key: unknown }[];
    const isKnown = typeof target === 'function' || known.some(({ key }) => key === token);
    if (!isKnown) Inject(token)(target, token);
    return lock(target, method, descriptor);
  };
}
