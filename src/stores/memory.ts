import { AsyncResource } from 'node:async_hooks';
import { randomInt } from 'node:crypto';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isInUse,
  type KeyState,
  type LeaseStore,
  type Look,
  MOST_WAITERS,
  type WakeUp,
  type Watch,
} from '../waiting/store.js';
import { MemoryLeases, type Receiver } from './memory-leases.js';

/**
 * Leases and queues in the memory of one process, in place of Redis: for tests, and for an application of one process. All
 * clients that are given the same object share them, and no other process does. Postgres keeps every promise about
 * transactions under a key, whoever else writes: callers of another process wait in Postgres then.
 */
export interface MemoryStore {
  readonly kind: 'memory';
  /** Loses every lease and every place in the queues at once, as FLUSHALL does in Redis. */
  flush(): void;
  /** For `fencedLock` alone: a client of these leases, and the name that others are told of it. */
  connect(keyPrefix: string, name?: string): LeaseStore;
  /** For `fencedLock` alone: what its holders are known by in Postgres. A number of 31 bits. */
  readonly room: number;
}

/** Makes a store for the option `redis` of `fencedLock`. @see MemoryStore */
export function memoryStore(): MemoryStore {
  const prefixes = new Map<string, MemoryLeases>();
  return {
    kind: 'memory',
    // Random: two processes must not end each other's transactions as those of former holders.
    room: randomInt(2 ** 31),
    flush: () => {
      for (const leases of prefixes.values()) leases.flush();
    },
    connect: (keyPrefix, name) => {
      const leases = prefixes.get(keyPrefix) ?? new MemoryLeases();
      prefixes.set(keyPrefix, leases);
      return new MemoryClient(leases, name);
    },
  };
}

/** One watch of a key. */
interface Watcher {
  readonly wake: (wakeUp: WakeUp) => void;
  open: boolean;
}

/** One client of the leases. Each method does what a script of lua/ does in Redis, and awaits nothing, so it is atomic, too. */
class MemoryClient implements LeaseStore, Receiver {
  readonly #leases: MemoryLeases;
  readonly #name: string | undefined;
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** Wake-ups run in the async context in which the client was made. That of the caller that releases holds a lock. */
  readonly #context = new AsyncResource('FencedLockMemoryStore');

  constructor(leases: MemoryLeases, name: string | undefined) {
    this.#leases = leases;
    this.#name = name;
  }

  async acquire({ key, holder, leaseTime }: Claim, { enter = 0 }: Look = {}): Promise<AcquireResult> {
    const leases = this.#leases;
    // A key that lost its holder told nobody, so whoever looks makes the offer.
    const isFree = leases.holderOf(key) === undefined;
    const isOwn = isFree && [undefined, holder].includes(leases.passOn(key, { own: holder }));
    if (isOwn || leases.holderOf(key) === holder) {
      leases.put(key, holder, leaseTime, this.#name);
      return { taken: true, contended: leases.waiting(key) > 0 };
    }
    if (enter > 0) leases.enter(key, holder, this, enter, this.#name);
    const present = { holder: leases.holderOf(key) ?? '', ...this.#holderNamed(key) };
    return { taken: false, expiresIn: Math.max(1, leases.leftOf(key)), ...present };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    return claims.map(({ key, holder, leaseTime }) => {
      const present = this.#leases.holderOf(key);
      if (present === holder) this.#leases.put(key, holder, leaseTime, this.#name);
      // Those who wait do not know that nobody has it, and would sleep to the end of the lost lease.
      else if (present === undefined) this.#passOn(key);
      return present === holder ? 'extended' : 'gone';
    });
  }

  async yield({ key, holder, leaseTime }: Claim): Promise<boolean> {
    const present = this.#leases.holderOf(key);
    if (present !== undefined && present !== holder) return false;
    if (this.#leases.passOn(key) !== undefined) return false;
    if (present === undefined) this.#leases.tell(key, 'look');
    else this.#leases.put(key, holder, leaseTime, this.#name);
    return present !== undefined;
  }

  async release({ key, holder }: Claim, quietly = false): Promise<void> {
    this.#leases.leave(key, holder);
    const present = this.#leases.holderOf(key);
    if (present === undefined || present === holder) this.#passOn(key, quietly);
  }

  async watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const watcher: Watcher = { wake, open: true };
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(watcher));
    this.#leases.receivers.add(this);
    return {
      close: () => this.#close(key, watcher),
      get hears() {
        return watcher.open;
      },
    };
  }

  async hint({ key, holder }: Claim): Promise<void> {
    const next = this.#leases.firstOf(key);
    if (next !== undefined && this.#leases.holderOf(key) === holder) this.#leases.tell(key, { next });
  }

  async transfer({ key, holder, leaseTime }: Claim, successor: string): Promise<boolean> {
    const present = this.#leases.holderOf(key);
    if (present !== holder && present !== successor) return false;
    this.#leases.put(key, successor, leaseTime, this.#name);
    return true;
  }

  async inspect(key: string, names = 0): Promise<KeyState> {
    const [holder, waiting] = [this.#leases.holderOf(key), this.#leases.waiting(key)];
    const waiters = this.#leases.waiters(key).slice(0, names);
    return {
      key,
      holder,
      expiresIn: this.#leases.leftOf(key),
      waiting,
      ...(waiters.length > 0 && { waiters }),
      ...this.#holderNamed(key),
    };
  }

  async list(): Promise<readonly KeyState[]> {
    const states = await Promise.all(this.#leases.keys().map((key) => this.inspect(key, MOST_WAITERS)));
    return states.filter(isInUse);
  }

  async force(key: string, holder: string): Promise<boolean> {
    if (this.#leases.holderOf(key) !== holder) return false;
    this.#passOn(key);
    return true;
  }

  /** The store never goes away, so it never returns. */
  onReturn(): () => void {
    return () => {};
  }

  async close(): Promise<void> {
    for (const [key, watchers] of this.#watchers) for (const watcher of watchers) this.#close(key, watcher);
  }

  hears(key: string): boolean {
    return this.#watchers.has(key);
  }

  tell(key: string, wakeUp: WakeUp): void {
    const watchers = this.#watchers.get(key);
    if (watchers === undefined) return;
    for (const watcher of watchers) {
      // As over a network: the one that tells goes on first. By a promise, because fake timers may hold up microtasks.
      void Promise.resolve().then(() => {
        if (watcher.open) this.#context.runInAsyncScope(watcher.wake, undefined, wakeUp);
      });
    }
  }

  #holderNamed(key: string): { readonly process?: string } {
    const process = this.#leases.nameOf(key);
    return process === undefined ? {} : { process };
  }

  #passOn(key: string, quietly = false): void {
    if (this.#leases.passOn(key, { quietly }) !== undefined) return;
    this.#leases.free(key);
    if (!quietly) this.#leases.tell(key, 'look');
  }

  #close(key: string, watcher: Watcher): void {
    watcher.open = false;
    const watchers = this.#watchers.get(key);
    if (!watchers?.delete(watcher) || watchers.size > 0) return;
    this.#watchers.delete(key);
    if (this.#watchers.size === 0) this.#leases.receivers.delete(this);
  }
}
