import { Deadline } from '../../base/clock.js';
import { asError } from '../../base/errors.js';
import type { Emit } from '../../base/events.js';
import type { NotedRefusal, Refusal } from '../../base/refusal.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  type KeyState,
  type LeaseStore,
  type Look,
  NotAsked,
  type WakeUp,
  type Watch,
} from '../store.js';

/**
 * How long a failed store is not asked. After that, one probe in the background finds out whether it is back;
 * milliseconds.
 */
const PROBE_PAUSE = 1_000;

/**
 * Implements `onRedisUnavailable: 'postgres'`. While the inner store cannot be reached, every acquire succeeds without
 * it, and only Postgres serializes the transactions, by the lock on the key's row. Only the first caller waits for the
 * store's time limit.
 */
export class FallbackStore implements LeaseStore {
  readonly goesOnWithout = true;
  readonly #store: LeaseStore;
  readonly #emit: Emit;
  /** Why the store is not used at the moment. */
  #down: Error | undefined;
  #probePause = new Deadline(0);
  /**
   * Holders that were granted without the store, and whether the store may have granted them a lease in a lost reply.
   */
  readonly #grantedWithout = new Map<string, { inDoubt: boolean }>();
  /** Leases that the store may still have, to be released when it can be reached. */
  readonly #pendingReleases: Claim[] = [];

  constructor(store: LeaseStore, emit: Emit) {
    this.#store = store;
    this.#emit = emit;
  }

  get isKnownAway(): boolean {
    return this.#down !== undefined;
  }

  async acquire(claim: Claim, look?: Look): Promise<AcquireResult> {
    let inDoubt = false;
    if (this.#down === undefined) {
      try {
        const answer = await this.#store.acquire(claim, look);
        this.#grantedWithout.delete(claim.holder);
        return answer;
      } catch (error) {
        inDoubt = !(error instanceof NotAsked);
        this.#markDown(error);
      }
    } else if (this.#probePause.passed) {
      this.#probe(claim.key);
    }
    this.#grantedWithout.set(claim.holder, { inDoubt });
    return { taken: true, shared: this.#down ?? new Error('the store could not be asked') };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const known = claims.filter(({ holder }) => !this.#grantedWithout.has(holder));
    const answers = known.length === 0 ? [] : await this.#store.extend(known);
    const extensions = new Map(known.map((claim, index) => [claim, answers[index] as Extension]));
    return claims.map((claim) => extensions.get(claim) ?? 'extended');
  }

  async yield(claim: Claim): Promise<boolean> {
    if (!this.#grantedWithout.has(claim.holder)) {
      try {
        return await this.#store.yield(claim);
      } catch (error) {
        // The look that follows must not wait for the store once more.
        if (this.#down === undefined) this.#markDown(error);
        throw error;
      }
    }
    // A busy key passes on by `yield` and seldom calls `acquire`, so probe here, too.
    if (this.#probePause.passed) this.#probe(claim.key);
    if (this.#down !== undefined) return true;
    // The store is back, and callers queue in it again. It may still have a lease of this holder.
    this.#grantedWithout.delete(claim.holder);
    await this.#store.release(claim);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const without = this.#grantedWithout.get(claim.holder);
    this.#grantedWithout.delete(claim.holder);
    if (without === undefined || this.#down === undefined) return await this.#store.release(claim, quietly);
    if (!without.inDoubt) return;
    // Send the release on the same connection, after the acquire that it undoes: a frozen server executes both in
    // order.
    this.#store.release(claim).catch(() => this.#pendingReleases.push(claim));
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    // While the store is not used, nobody serves its queue.
    if (this.#down) return Promise.reject(this.#down);
    return this.#store.watch(key, wake);
  }

  /** Only if the inner store has it. */
  get hint(): LeaseStore['hint'] {
    return this.#store.hint && this.#hint;
  }

  readonly #hint = async (claim: Claim, attempt: string): Promise<void> => {
    if (this.#down === undefined && !this.#grantedWithout.has(claim.holder)) await this.#store.hint?.(claim, attempt);
  };

  transfer(claim: Claim, successor: string): Promise<boolean> {
    return this.#store.transfer(claim, successor);
  }

  inspect(key: string, names?: number): Promise<KeyState> {
    return this.#store.inspect(key, names);
  }

  list(): Promise<readonly KeyState[]> {
    return this.#store.list();
  }

  force(key: string, holder: string): Promise<boolean> {
    return this.#store.force(key, holder);
  }

  async noteRefusals(refusals: readonly Refusal[]): Promise<void> {
    if (this.#down === undefined) await this.#store.noteRefusals(refusals);
  }

  refusals(): Promise<readonly NotedRefusal[]> {
    return this.#store.refusals();
  }

  onReturn(listener: () => void): () => void {
    return this.#store.onReturn(listener);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #markDown(error: unknown): void {
    this.#down = asError(error);
    this.#probePause = new Deadline(PROBE_PAUSE);
    this.#emit({ type: 'redis-passed-by', error });
  }

  #probe(key: string): void {
    if (this.#down === undefined) return;
    this.#probePause = new Deadline(Number.POSITIVE_INFINITY);
    this.#store.inspect(key).then(
      () => {
        this.#down = undefined;
        this.#emit({ type: 'redis-back' });
        for (const claim of this.#pendingReleases.splice(0)) this.#store.release(claim).catch(() => {});
      },
      (error: unknown) => {
        this.#down = asError(error);
        this.#probePause = new Deadline(PROBE_PAUSE);
      },
    );
  }
}
