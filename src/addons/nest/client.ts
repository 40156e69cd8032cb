import { checkNames } from '../../base/checks.js';
import { InvalidOptionError } from '../../base/errors.js';
import type { fencedLock } from '../../index.js';

/** What fencedLock adds to a client, as far as Nest uses it. */
export interface LockClient {
  $withLock(key: never, fn: never, options?: never): Promise<unknown>;
  $tryWithLock(key: never, fn: never, options?: never): Promise<unknown>;
  $lock(key: never, options?: never): Promise<unknown>;
  $resumeLock(state: never, options?: never): Promise<unknown>;
  readonly $locks: LockOperators;
  $disconnect(): Promise<void>;
}

/** For operators: `inspect`, `list`, `forceRelease`, `close`. */
export type LockOperators = ReturnType<ReturnType<typeof fencedLock>>['$locks'];

/**
 * A class that stands for the client that `make` gives: the name that Nest finds it by, and its type.
 *
 * ```ts
 * export class PrismaService extends ClientClass(createPrisma) {}
 * ```
 *
 * Leave it empty: nothing is ever made of it. The client itself is injected, from `FencedLockModule.forRoot({ token: PrismaService, … })` or
 * from a provider with `useFactory`.
 */
export function ClientClass<Client extends object>(
  make: (...args: never[]) => Client | Promise<Client>,
): abstract new () => Client {
  if (typeof make !== 'function') {
    throw new InvalidOptionError('ClientClass', 'must be given the function that makes the client.');
  }
  // One for each client: Nest may find them by these classes themselves.
  return class extends NotTheClient {} as unknown as abstract new () => Client;
}

abstract class NotTheClient {
  constructor() {
    throw new InvalidOptionError(
      new.target.name,
      'stands for a client and cannot be made itself. Do not list it in `providers`: give it as `token` to FencedLockModule, ' +
        'or provide it with `useFactory`.',
    );
  }
}

/** @throws InvalidOptionError for a class that stands for the client and has methods, which nobody would ever call. */
export function checkToken(token: unknown): void {
  if (typeof token !== 'function' || !(token.prototype instanceof NotTheClient)) return;
  const member = Object.getOwnPropertyNames(token.prototype).find((name) => name !== 'constructor');
  if (member === undefined) return;
  throw new InvalidOptionError(
    'token',
    `of FencedLockModule is ${token.name}, which only stands for the client, and has \`${member}\`: the injected client has not. Put it ` +
      'into a provider of its own, or into the client by `$extends({ client: … })`.',
  );
}

/** @throws InvalidOptionError */
export function checkModuleOptions(
  options: { readonly client?: unknown; readonly onClosed?: unknown } | undefined,
): LockClient {
  const { client, onClosed } = options ?? {};
  const { $withLock, $locks } = (client ?? {}) as Partial<LockClient>;
  if (typeof $withLock !== 'function' || typeof $locks !== 'object') {
    throw new InvalidOptionError(
      'client',
      'of FencedLockModule must be a Prisma client that is extended by fencedLock: new PrismaClient(…).$extends(fencedLock(…)). A ' +
        'factory returns it as `{ client }`.',
    );
  }
  checkNames('options', options, ['client', 'disconnect', 'onClosed']);
  if (onClosed !== undefined && typeof onClosed !== 'function') {
    throw new InvalidOptionError('onClosed', 'of FencedLockModule must be a function.');
  }
  return client as LockClient;
}
