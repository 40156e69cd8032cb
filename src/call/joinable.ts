import { offAbort, onAbort } from '../base/abort-listeners.js';
import { after } from '../base/clock.js';
import { InvalidOptionError, TransactionAbortedError } from '../base/errors.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { LockOptions, ResolvedLockOptions } from '../options/options.js';
import type { Lock, Work } from './lock.js';

/**
 * The transaction of a call, as inner calls of the same keys join it: they work in it, under its token, and it ends with
 * the outermost one. One that fails dooms it, also if its error is caught: what it had begun would stay half done.
 */
export class JoinableTransaction {
  readonly client: object;
  readonly #tx: unknown;
  readonly #lock: Lock;
  readonly #abort: LazyAbort;
  readonly #options: Pick<ResolvedLockOptions, 'isolationLevel' | 'hookErrors'>;
  /** Of those that run when the outer function ends: what they had done is rolled back. */
  readonly #over = new LazyAbort();
  #running = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    client: object,
    tx: unknown,
    lock: Lock,
    abort: LazyAbort,
    options: Pick<ResolvedLockOptions, 'isolationLevel' | 'hookErrors'>,
  ) {
    this.client = client;
    this.#tx = tx;
    this.#lock = lock;
    this.#abort = abort;
    this.#options = options;
  }

  /** @throws InvalidOptionError for an option that the transaction cannot follow any more. */
  async join<Tx, R>(work: Work<Tx, R>, options: LockOptions): Promise<R> {
    const { isolationLevel, hookErrors, retries, timeout, signal } = options;
    if (isolationLevel !== undefined && isolationLevel !== this.#options.isolationLevel) {
      throw new InvalidOptionError('isolationLevel', 'is that of the outer call, whose transaction this one joins.');
    }
    if (hookErrors !== undefined && hookErrors !== this.#options.hookErrors) {
      throw new InvalidOptionError('hookErrors', 'is that of the outer call, with which the hooks of this one run.');
    }
    if (retries) {
      throw new InvalidOptionError('retries', 'belong to the outer call, whose transaction this one joins.');
    }
    const abort = this.#abort;
    abort.throwIfAborted();
    signal?.throwIfAborted();
    const aborted = { handleEvent: () => abort.abort(signal?.reason) };
    onAbort(signal, aborted);
    const overdue = () =>
      new TransactionAbortedError(
        this.#lock.key,
        `a call inside it had not ended within its timeout of ${timeout} ms. If that is too short, raise \`timeout\`.`,
      );
    const timer = timeout === undefined ? undefined : after(timeout, () => abort.abort(overdue()));
    this.#running++;
    try {
      const worked = Promise.resolve(work(this.#tx as Tx, this.#lock));
      return await this.#over.race(abort.race(worked));
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    } finally {
      this.#running--;
      timer?.stop();
      offAbort(signal, aborted);
    }
  }

  /** Called when the outer function has failed: whoever is still at work must not believe that it has committed. */
  end(error: unknown): void {
    if (this.#running === 0) return;
    const why = 'the call whose transaction it had joined ended before it did. See the cause.';
    this.#over.abort(new TransactionAbortedError(this.#lock.key, why, error));
  }

  /** Called when the outer function has returned. @throws TransactionAbortedError */
  check(): void {
    if (this.#failure) {
      const why = 'a call inside it failed, which dooms the transaction that both share. See the cause.';
      throw new TransactionAbortedError(this.#lock.key, why, this.#failure.error);
    }
    if (this.#running > 0) {
      throw new TransactionAbortedError(this.#lock.key, 'a call inside it had not ended: await every one of them.');
    }
  }
}
