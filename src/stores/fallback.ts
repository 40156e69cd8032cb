import { Deadline } from '../base/clock.js';
import { asError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isForeignValue,
  type KeyState,
  type LeaseStore,
  type Look,
  NotAsked,
  type WakeUp,
  type Watch,
} from '../waiting/store.js';

/**
 * How long a failed store is not asked. After that, one probe in the background finds out whether it is back;
 * milliseconds.
 */
const PROBE_PAUSE = 1_000;

/** The time for which one server of the store is not used. */
interface Outage {
  error: Error;
  /** A key of that server, by which a probe asks for it. */
  readonly key: string;
  probePause: Deadline;
  /** Leases that the server may still have, to be released when it can be reached. */
  readonly pendingReleases: Claim[];
}

/**
 * Implements `onRedisUnavailable: 'postgres'`. While the key's server cannot be reached, every acquire succeeds without
 * it, and only Postgres serializes the transactions, by the lock on the key's row. Only the first caller waits for the
 * store's time limit.
 *
 * Every error is an outage of the server, whether it is silent, cannot be reached or refuses, but that of a foreign value:
 * its callers are told of it.
 */
export class FallbackStore implements LeaseStore {
  readonly goesOnWithout = true;
  readonly #store: LeaseStore;
  readonly #emit: Emit;
  /** By server. The masters of a Cluster fail one by one. */
  readonly #outages = new Map<string, Outage>();
  /**
   * Holders that were granted without the store, and whether the store may have granted them a lease in a lost reply.
   */
  readonly #grantedWithout = new Map<string, { inDoubt: boolean }>();

  constructor(store: LeaseStore, emit: Emit) {
    this.#store = store;
    this.#emit = emit;
  }

  get newHolderPerLook(): boolean {
    return this.#store.newHolderPerLook === true;
  }

  isKnownAway(key: string): boolean {
    return this.#outageOf(key) !== undefined;
  }

  async acquire(claim: Claim, look?: Look): Promise<AcquireResult> {
    this.#probe();
    let inDoubt = false;
    let outage = this.#outageOf(claim.key);
    if (outage === undefined) {
      try {
        const answer = await this.#store.acquire(claim, look);
        this.#grantedWithout.delete(claim.holder);
        return answer;
      } catch (error) {
        if (isForeignValue(error)) throw error;
        inDoubt = !(error instanceof NotAsked);
        outage = this.#noteOutage(claim.key, error);
      }
    }
    this.#grantedWithout.set(claim.holder, { inDoubt });
    return { taken: true, shared: outage.error };
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
        if (!isForeignValue(error)) this.#noteOutage(claim.key, error);
        throw error;
      }
    }
    // A busy key passes on by `yield` and seldom calls `acquire`, so probe here, too.
    this.#probe();
    if (this.#outageOf(claim.key) !== undefined) return true;
    // The store is back, and callers queue in it again. It may still have a lease of this holder.
    this.#grantedWithout.delete(claim.holder);
    await this.#store.release(claim);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const without = this.#grantedWithout.get(claim.holder);
    this.#grantedWithout.delete(claim.holder);
    const outage = this.#outageOf(claim.key);
    if (without === undefined || outage === undefined) return await this.#store.release(claim, quietly);
    if (!without.inDoubt) return;
    // Send the release on the same connection, after the acquire that it undoes: a frozen server executes both in
    // order.
    this.#store.release(claim).catch(() => outage.pendingReleases.push(claim));
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    // While the store is not used, nobody serves its queue.
    const outage = this.#outageOf(key);
    if (outage) return Promise.reject(outage.error);
    return this.#store.watch(key, wake);
  }

  /** Only if the inner store has it. */
  get hint(): LeaseStore['hint'] {
    return this.#store.hint && this.#hint;
  }

  readonly #hint = async (claim: Claim): Promise<void> => {
    if (!this.isKnownAway(claim.key) && !this.#grantedWithout.has(claim.holder)) await this.#store.hint?.(claim);
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

  onReturn(listener: () => void): () => void {
    return this.#store.onReturn(listener);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #outageOf(key: string): Outage | undefined {
    return this.#outages.size === 0 ? undefined : this.#outages.get(this.#serverOf(key));
  }

  #serverOf(key: string): string {
    return this.#store.serverOf?.(key) ?? '';
  }

  /** Several callers may meet the same outage. */
  #noteOutage(key: string, error: unknown): Outage {
    const known = this.#outageOf(key);
    if (known) return known;
    const outage = { error: asError(error), key, probePause: new Deadline(PROBE_PAUSE), pendingReleases: [] };
    this.#outages.set(this.#serverOf(key), outage);
    this.#emit({ type: 'redis-passed-by', error });
    return outage;
  }

  /** Asks for the servers that are away, in the background. Another server may have taken the place of one by now. */
  #probe(): void {
    for (const [server, outage] of this.#outages) {
      if (!outage.probePause.passed) continue;
      outage.probePause = new Deadline(Number.POSITIVE_INFINITY);
      this.#store.inspect(outage.key).then(
        () => {
          this.#outages.delete(server);
          this.#emit({ type: 'redis-back' });
          for (const claim of outage.pendingReleases) this.#store.release(claim).catch(() => {});
        },
        (error: unknown) => {
          outage.error = asError(error);
          outage.probePause = new Deadline(PROBE_PAUSE);
        },
      );
    }
  }
}
