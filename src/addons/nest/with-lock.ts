import { Inject } from '@nestjs/common';
import { InvalidOptionError } from '../../base/errors.js';
import type { KeyOf } from '../decorators/key-of.js';
import type { ClientSource, LockingClient, TryWithLockOptions, WithLockOptions } from '../decorators/options.js';
import { type LockDecorator, lockMethod } from '../decorators/with-lock.js';
import { getLockClientToken } from './injection-tokens.js';

/** `client`: the name of a FencedLockModule, or a function of the object that the method is called on. Default: the module without a name. */
type Injected<Options, Self> = Omit<Options, 'client'> & {
  readonly client?: string | ((self: Self) => LockingClient) | undefined;
};

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
export function WithLock(
  key: KeyOf,
  options: Injected<WithLockOptions | TryWithLockOptions, never> = {},
): (target: object, name: string | symbol, descriptor: PropertyDescriptor) => unknown {
  const { client: name, ...others } = options ?? {};
  if (typeof name === 'function') return lockMethod(key, options as WithLockOptions);
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new InvalidOptionError(
      'client',
      'must be the name of a FencedLockModule, or a function that gives the client.',
    );
  }
  const token = getLockClientToken(name);
  const lock = lockMethod(key, others as WithLockOptions, injected(name));
  return (target, method, descriptor) => {
    if (typeof method !== 'string' && typeof method !== 'symbol') {
      throw new InvalidOptionError(
        'experimentalDecorators',
        'must be on for WithLock of prisma-extension-fenced-lock/nest, as for all of Nest. Without Nest, import it from ' +
          '`prisma-extension-fenced-lock/decorators`.',
      );
    }
    const replaced = lock(target, method, descriptor);
    injectOnce(target, token);
    return replaced;
  };
}

/** What Nest injects. In place of the client without a name, the object's own `prisma`. */
function injected(name: string | undefined): ClientSource {
  const token = getLockClientToken(name);
  const byNest = (self: unknown) => (self as { readonly [property: symbol]: unknown } | null | undefined)?.[token];
  if (name !== undefined) {
    return {
      clientOf: byNest,
      missing:
        `Nest has not injected that of the FencedLockModule named ${name}. Call the method on an object that Nest has ` +
        'made, in a unit test with Test.createTestingModule.',
    };
  }
  return {
    clientOf: (self) => byNest(self) ?? (self as { readonly prisma?: unknown } | null | undefined)?.prisma,
    missing:
      'Nest has not injected that of FencedLockModule, and the object that the method was called on has no `prisma` ' +
      'either. Call it on an object that Nest has made, or, in a unit test, give the object a `prisma`.',
  };
}

/** Nest's own name for the metadata of injected properties. */
const PROPERTIES = 'self:properties_metadata';

/** A property of the object, under the token itself, which collides with nothing. */
function injectOnce(target: object, token: symbol): void {
  // Of a static method Nest makes no object.
  if (typeof target === 'function') return;
  const { getMetadata } = Reflect as { getMetadata?(key: string, target: object): unknown };
  const known = (getMetadata?.(PROPERTIES, target.constructor) ?? []) as readonly { readonly key: unknown }[];
  if (!known.some(({ key }) => key === token)) Inject(token)(target, token);
}
