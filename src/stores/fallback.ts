import { randomInt } from 'node:crypto';
import { after } from '../base/clock.js';
import { asError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { type PermitName, permitName, permitOf } from '../base/permits.js';
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

/** Pause before each probe that finds out whether a failed server is back; milliseconds. */
const PROBE_PAUSE = 1_000;
/** Pause before a caller looks again for a permit that no other caller of this process has; milliseconds. */
const PERMIT_PAUSE = 100;

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
  /** The error for which a server is not used. The masters of a Cluster fail one by one. */
  readonly #outages = new Map<string, Error>();
  /** Holders that were granted without the store, and whether the store may have granted them a lease in a lost reply. */
  readonly #grantedWithout = new Map<string, boolean>();
  /** The permits of those of them that have one. */
  readonly #permits = new Map<string, string>();

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
    const permit = permitOf(claim.key);
    const key = permit && this.#freeHere(permit);
    if (permit !== undefined && key === undefined) return { taken: false, expiresIn: PERMIT_PAUSE };
    this.#grantedWithout.set(claim.holder, inDoubt);
    if (key === undefined) return { taken: true, shared: outage };
    this.#permits.set(claim.holder, key);
    return { taken: true, shared: outage, key };
  }

  /**
   * A permit that no caller of this process has. Other processes are not known of: one of them may have it, and Postgres lets
   * the caller wait then. So each begins at another permit.
   */
  #freeHere({ key, permit, most }: PermitName): string | undefined {
    const taken = new Set(this.#permits.values());
    const begin = randomInt(most);
    const names = Array.from({ length: most }, (_, at) => permitName(key, (begin + at) % most));
    return permit === undefined ? names.find((name) => !taken.has(name)) : permitName(key, permit);
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const known = claims.filter(({ holder }) => !this.#grantedWithout.has(holder));
    const answers = known.length === 0 ? [] : await this.#store.extend(known);
    const extensions = new Map(known.map((claim, index) => [claim, answers[index] as Extension]));
    return claims.map((claim) => extensions.get(claim) ?? 'extended');
  }

  async yield(claim: Claim): Promise<boolean> {
    if (!this.#grantedWithout.has(claim.holder)) return await this.#store.yield(claim);
    if (this.isKnownAway(claim.key)) return true;
    // The store is back, and callers queue in it again. It may still have a lease of this holder.
    this.#grantedWithout.delete(claim.holder);
    await this.#store.release(claim);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const inDoubt = this.#grantedWithout.get(claim.holder);
    this.#grantedWithout.delete(claim.holder);
    this.#permits.delete(claim.holder);
    if (inDoubt === undefined || !this.isKnownAway(claim.key)) return await this.#store.release(claim, quietly);
    // Nobody waits for it. A frozen server executes it behind the acquire; where it is lost, the lease ends by itself.
    if (inDoubt) this.#store.release(claim).catch(() => {});
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    // While the store is not used, nobody serves its queue.
    const outage = this.#outageOf(key);
    return outage ? Promise.reject(outage) : this.#store.watch(key, wake);
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
    this.#outages.clear();
    return this.#store.close();
  }

  #outageOf(key: string): Error | undefined {
    return this.#outages.size === 0 ? undefined : this.#outages.get(this.#serverOf(key));
  }

  #serverOf(key: string): string {
    return this.#store.serverOf?.(key) ?? '';
  }

  /** Several callers may meet the same outage. */
  #noteOutage(key: string, error: unknown): Error {
    const known = this.#outageOf(key);
    if (known) return known;
    const outage = asError(error);
    this.#outages.set(this.#serverOf(key), outage);
    this.#emit({ type: 'redis-passed-by', error });
    this.#probe(this.#serverOf(key), key);
    return outage;
  }

  /** Asks for the server in the background, by one of its keys. Another server may have taken its place by then. */
  #probe(server: string, key: string): void {
    const probe = async () => {
      if (!this.#outages.has(server)) return;
      try {
        await this.#store.inspect(key);
        if (this.#outages.delete(server)) this.#emit({ type: 'redis-back' });
      } catch (error) {
        if (this.#outages.has(server)) this.#outages.set(server, asError(error));
        this.#probe(server, key);
      }
    };
    after(PROBE_PAUSE, () => void probe()).unref();
  }
}
