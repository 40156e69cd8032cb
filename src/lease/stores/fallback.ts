import { Deadline } from '../../base/clock.js';
import type { Emit } from '../../base/events.js';
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

/** How long the store is spared after it has failed; then one call in the background asks whether it is back. */
const SPARED = 1_000;

/**
 * A store that is passed by while it cannot be reached: everybody gets on, and Postgres alone keeps order, by the
 * key's row that each transaction takes first. A caller meets the store's silence once and not again and again.
 */
export class FallbackStore implements LeaseStore {
  readonly #store: LeaseStore;
  readonly #emit: Emit;
  /** Why the store is passed by at the moment. */
  #down: Error | undefined;
  #spared = new Deadline(0);
  /** Holders that got on without the store, and whether it may have given them the lease all the same. */
  readonly #without = new Map<string, { inDoubt: boolean }>();
  /** What it may still have in their names, to be given back when it can be reached. */
  readonly #owed: Claim[] = [];

  constructor(store: LeaseStore, emit: Emit) {
    this.#store = store;
    this.#emit = emit;
  }

  async acquire(claim: Claim, look?: Look): Promise<AcquireResult> {
    let inDoubt = false;
    if (this.#down === undefined) {
      try {
        const answer = await this.#store.acquire(claim, look);
        this.#without.delete(claim.holder);
        return answer;
      } catch (error) {
        inDoubt = !(error instanceof NotAsked);
        this.#passBy(error);
      }
    } else if (this.#spared.passed) {
      this.#askAgain(claim.key);
    }
    this.#without.set(claim.holder, { inDoubt });
    return { taken: true, shared: this.#down ?? new Error('the store could not be asked') };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const known = claims.filter(({ holder }) => !this.#without.has(holder));
    const answers = known.length === 0 ? [] : await this.#store.extend(known);
    const extensions = new Map(known.map((claim, index) => [claim, answers[index] as Extension]));
    return claims.map((claim) => extensions.get(claim) ?? 'extended');
  }

  async yield(claim: Claim): Promise<boolean> {
    if (!this.#without.has(claim.holder)) return await this.#store.yield(claim);
    // A busy key seldom comes here to acquire.
    if (this.#spared.passed) this.#askAgain(claim.key);
    if (this.#down !== undefined) return true;
    // It is back, and everybody waits in it again. It may have the lease in this name all the same.
    this.#without.delete(claim.holder);
    await this.#store.release(claim);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const without = this.#without.get(claim.holder);
    this.#without.delete(claim.holder);
    if (without === undefined || this.#down === undefined) return await this.#store.release(claim, quietly);
    if (!without.inDoubt) return;
    // Behind the look that it undoes: a server that was only frozen carries out both.
    this.#store.release(claim).catch(() => this.#owed.push(claim));
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    // Who stands in a queue that nobody serves waits for nothing.
    if (this.#down) return Promise.reject(this.#down);
    return this.#store.watch(key, wake);
  }

  async hint(claim: Claim): Promise<void> {
    if (this.#down === undefined && !this.#without.has(claim.holder)) await this.#store.hint?.(claim);
  }

  transfer(claim: Claim, successor: string): Promise<boolean> {
    return this.#store.transfer(claim, successor);
  }

  inspect(key: string): Promise<KeyState> {
    return this.#store.inspect(key);
  }

  list(): Promise<readonly KeyState[]> {
    return this.#store.list();
  }

  force(key: string, holder: string): Promise<boolean> {
    return this.#store.force(key, holder);
  }

  onReturn(listener: () => void): () => void {
    return this.#store.onReturn(listener);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #passBy(error: unknown): void {
    this.#down = error instanceof Error ? error : new Error(String(error));
    this.#spared = new Deadline(SPARED);
    this.#emit({ type: 'redis-passed-by', error });
  }

  #askAgain(key: string): void {
    if (this.#down === undefined) return;
    this.#spared = new Deadline(Number.POSITIVE_INFINITY);
    this.#store.inspect(key).then(
      () => {
        this.#down = undefined;
        this.#emit({ type: 'redis-back' });
        for (const claim of this.#owed.splice(0)) this.#store.release(claim).catch(() => {});
      },
      (error: unknown) => {
        this.#down = error instanceof Error ? error : new Error(String(error));
        this.#spared = new Deadline(SPARED);
      },
    );
  }
}
