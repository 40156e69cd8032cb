import { OVERDUE, within } from '../../base/clock.js';
import {
  FencedLockError,
  type FencedLockErrorCode,
  InvalidOptionError,
  LockUnavailableError,
} from '../../base/errors.js';
import type { FencedLockService } from './service.js';

/** A key that nobody takes: it is only asked about. */
const KEY = 'fenced-lock:health';

export interface HealthOptions {
  /** How long both servers may take together; ms. Default: 1 000. */
  readonly timeout?: number | undefined;
}

/** What `HealthCheckService` of @nestjs/terminus takes from an indicator. */
export type LockHealth<Name extends string> = {
  readonly [Key in Name]:
    | { readonly status: 'up' }
    | { readonly status: 'down'; readonly code: FencedLockErrorCode | 'TIMEOUT' | 'POSTGRES' };
};

/**
 * Whether locks can be had: asks Redis for a key, and Postgres for what it knows of it, over the connection that finds out
 * outcomes. For @nestjs/terminus, which it does not need to be imported.
 */
export class FencedLockHealthIndicator {
  readonly #locks: Pick<FencedLockService, 'locks'>;

  constructor(locks: Pick<FencedLockService, 'locks'>) {
    this.#locks = locks;
  }

  /**
   * Rejects for a wrong option alone: terminus answers 503 where `status` is `down`. `code`: `LOCK_UNAVAILABLE`, Redis gave no usable answer;
   * `POSTGRES`, Postgres did not, or it lacks the schema; `TIMEOUT`, one of them was too slow: a Redis that cannot be reached, too, if
   * `timeout` is shorter than `commandTimeout`. Nothing of an error's text is shown, which may name hosts.
   */
  async isHealthy<const Name extends string = 'locks'>(
    name: Name = 'locks' as Name,
    { timeout = 1_000 }: HealthOptions = {},
  ): Promise<LockHealth<Name>> {
    if (!(timeout > 0)) throw new InvalidOptionError('timeout', 'must be a number of milliseconds above 0.');
    const health = await within(this.#locks.locks.inspect(KEY), timeout).then(
      (seen) => (seen === OVERDUE ? { status: 'down', code: 'TIMEOUT' } : { status: 'up' }),
      (error: unknown) => ({ status: 'down', code: codeOf(error) }),
    );
    return { [name]: health } as unknown as LockHealth<Name>;
  }
}

function codeOf(error: unknown): FencedLockErrorCode | 'POSTGRES' {
  if (!(error instanceof FencedLockError) || error.code === 'NOT_INSTALLED') return 'POSTGRES';
  return error instanceof LockUnavailableError && error.server === 'Postgres' ? 'POSTGRES' : error.code;
}
