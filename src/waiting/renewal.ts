import { after, now, stop, type Timer } from '../base/clock.js';
import type { Lease } from './lease.js';
import type { Extension, LeaseStore } from './store.js';

interface Renewed {
  /** When to extend the lease next; `Infinity` if it is not renewed, or an extension is in flight. */
  dueAt: number;
  /** The store's last error for this lease. */
  uncertain: Error | undefined;
}

/** Share of the lease time after which the lease is extended. */
const RENEW_AT = 1 / 3;
/** Share of the lease time after which a failed extension is sent again. */
const RETRY_AT = 1 / 12;

/**
 * Extends the leases of one client with one timer. A lease is held, uncertain (no answer: extended again until its time
 * is over) or lost (gone, or its time is over).
 */
export class Renewal {
  readonly #store: LeaseStore;
  readonly #leases = new Map<Lease, Renewed>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** Watches the lease until `remove`, and extends it if it is to be renewed: an offer at once. */
  add(lease: Lease): void {
    const { expiresAt, leaseTime } = lease;
    const dueAt = lease.renew ? expiresAt - leaseTime * (1 - RENEW_AT) : Number.POSITIVE_INFINITY;
    this.#leases.set(lease, { dueAt, uncertain: undefined });
    this.#schedule(Math.min(dueAt, expiresAt));
    if (lease.isOffer) void this.look(lease);
  }

  remove(lease: Lease): void {
    // The timer keeps running: another lease is likely to follow, and the timer does not keep the process alive.
    this.#leases.delete(lease);
  }

  /**
   * Asks the store now whether the lease still stands. Resolves to whether it is gone.
   *
   * A renewed lease is extended instead of read: of several nodes, only a majority that has lost it tells so.
   */
  async look(lease: Lease): Promise<boolean> {
    const renewed = this.#leases.get(lease);
    if (renewed && lease.renew && lease.loss === undefined) {
      renewed.dueAt = Number.POSITIVE_INFINITY;
      await this.#extend([lease]);
      return lease.loss !== undefined;
    }
    const state = await this.#store.inspect(lease.key).catch(() => undefined);
    if (state === undefined || state.holder === lease.holder) return false;
    lease.lose('gone');
    return true;
  }

  /** Another process has taken the lease from this holder. */
  lose(holder: string): void {
    for (const lease of this.#leases.keys()) if (lease.holder === holder) lease.lose('gone');
  }

  close(): void {
    this.#leases.clear();
    this.#stop();
  }

  #stop(): void {
    stop(this.#timer);
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** Only brings the timer forward. A tick that is too early finds nothing due and sets the next one. */
  #schedule(at: number): void {
    if (at >= this.#timerAt) return;
    stop(this.#timer);
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
      // Include leases that are nearly due: one tick for many leases instead of many.
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
      // A lease whose time is over stays lost even if the store extended it: the work under it may already be aborted.
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
