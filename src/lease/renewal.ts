import { after, now, type Timer } from '../base/clock.js';
import type { Lease } from './lease.js';
import type { Extension, LeaseStore } from './store.js';

interface Renewed {
  readonly renew: boolean;
  /** When to extend it next; `Infinity` where it is not to be renewed, or its extension is under way. */
  dueAt: number;
  /** The last error of the store about this lease. */
  uncertain: Error | undefined;
}

/** Share of the lease time after which it is extended. */
const RENEW_AT = 1 / 3;
/** Share of the lease time after which an extension without an answer is tried again. */
const RETRY_AT = 1 / 12;

/**
 * Extends the leases of one client, all with one timer. A lease is held, uncertain (no answer: try again until
 * its time is over), or lost (gone, or its time is over).
 */
export class Renewal {
  readonly #store: LeaseStore;
  readonly #leases = new Map<Lease, Renewed>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** Watches over the lease until `remove`; with `renew`, also extends it. */
  add(lease: Lease, renew: boolean): void {
    const dueAt = renew ? lease.expiresAt - lease.leaseTime * (1 - RENEW_AT) : Number.POSITIVE_INFINITY;
    this.#leases.set(lease, { renew, dueAt, uncertain: undefined });
    this.#schedule(Math.min(dueAt, lease.expiresAt));
  }

  remove(lease: Lease): void {
    // The timer stays: in a moment there is another lease to watch over, and it keeps no process alive.
    this.#leases.delete(lease);
  }

  /**
   * Asks the store now: there is reason to think that the lease is gone. Resolves to whether it is.
   *
   * One that is renewed is extended, which tells it best: of several nodes one may have forgotten it, and gets it again.
   */
  async look(lease: Lease): Promise<boolean> {
    if (this.#leases.get(lease)?.renew && lease.loss === undefined) {
      await this.#extend([lease]);
      return lease.loss !== undefined;
    }
    const state = await this.#store.inspect(lease.key).catch(() => undefined);
    if (state === undefined || state.holder === lease.holder) return false;
    lease.lose('gone');
    return true;
  }

  close(): void {
    this.#leases.clear();
    this.#stop();
  }

  #stop(): void {
    this.#timer?.stop();
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** Only ever brings the timer forward: an early tick finds nothing due and sets the next one. */
  #schedule(at: number): void {
    if (at >= this.#timerAt) return;
    this.#timer?.stop();
    this.#timerAt = at;
    this.#timer = after(at - now(), () => this.#tick()).unref();
  }

  #tick(): void {
    this.#stop();
    const due: Lease[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [lease, renewed] of this.#leases) {
      if (now() >= lease.expiresAt) lease.lose('expired', renewed.uncertain);
      if (lease.loss) {
        this.#leases.delete(lease);
        continue;
      }
      // What is nearly due goes along: one pipeline for many leases instead of many.
      if (renewed.dueAt <= now() + lease.leaseTime / 30) {
        renewed.dueAt = Number.POSITIVE_INFINITY;
        due.push(lease);
      }
      next = Math.min(next, renewed.dueAt, lease.expiresAt);
    }
    if (Number.isFinite(next)) this.#schedule(next);
    if (due.length > 0) void this.#extend(due);
  }

  async #extend(leases: readonly Lease[]): Promise<void> {
    const sentAt = now();
    for (const lease of leases) lease.beat();
    const answers = await this.#store.extend(leases);
    leases.forEach((lease, index) => {
      this.#settle(lease, sentAt, answers[index] ?? new Error('the store gave no answer'));
    });
  }

  #settle(lease: Lease, sentAt: number, answer: Extension): void {
    const renewed = this.#leases.get(lease);
    if (renewed === undefined) return;
    if (answer === 'gone') {
      this.#leases.delete(lease);
      lease.lose('gone');
      return;
    }
    if (answer === 'extended') {
      // A lease that was late is lost even if the store was still generous: others may have been told so.
      if (lease.loss === undefined) lease.extended(sentAt);
      renewed.uncertain = undefined;
      renewed.dueAt = sentAt + lease.leaseTime * RENEW_AT;
    } else {
      renewed.uncertain = answer;
      renewed.dueAt = now() + lease.leaseTime * RETRY_AT;
    }
    this.#schedule(Math.min(renewed.dueAt, lease.expiresAt));
  }
}
