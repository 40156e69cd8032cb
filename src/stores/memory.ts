import { AsyncResource } from 'node:async_hooks';
import { randomInt } from 'node:crypto';
import { now } from '../base/clock.js';
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

/** For how long a key is kept for the one whose turn it is, until that one takes it; milliseconds. */
const OFFER_TIME = 1_000;

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

/** Both end by themselves, a queue as a whole. An offer has no `name`. */
interface Key {
  readonly lease?: { readonly holder: string; readonly name?: string | undefined; readonly ends: number };
  readonly queue: ReadonlyArray<{ readonly holder: string; readonly client: MemoryClient }>;
  readonly queueEnds: number;
}

/** The leases and queues under one prefix, as Redis would have them. No method awaits anything, so each is atomic. */
class MemoryLeases {
  readonly clients = new Set<MemoryClient>();
  /** Whoever takes a key or enters its queue releases it, even if it has ended by then, and a free key is not kept. */
  readonly #keys = new Map<string, Key>();

  /** The holder of the key; `undefined` if it is free. */
  holderOf(key: string): string | undefined {
    return this.#get(key).lease?.holder;
  }

  /** @param names how many of the waiting processes are named. */
  stateOf(key: string, names = 0): KeyState {
    const { lease: { holder, name, ends } = { ends: now() }, queue } = this.#get(key);
    const waiters = queue.slice(0, names).map(({ client }) => client.name);
    return {
      key,
      holder,
      expiresIn: Math.max(0, Math.ceil(ends - now())),
      waiting: queue.length,
      ...(waiters.length > 0 && { waiters }),
      ...(name !== undefined && { process: name }),
    };
  }

  states(): KeyState[] {
    return [...this.#keys.keys()].map((key) => this.stateOf(key, MOST_WAITERS)).filter(isInUse);
  }

  put(key: string, holder: string, leaseTime: number, name?: string): void {
    this.#keys.set(key, { ...this.#get(key), lease: { holder, name, ends: now() + leaseTime } });
  }

  enter(key: string, holder: string, client: MemoryClient, atLeast: number): void {
    const { lease, queue, queueEnds } = this.#get(key);
    const isIn = queue.some((place) => place.holder === holder);
    this.#keys.set(key, {
      ...(lease && { lease }),
      queue: isIn ? queue : [...queue, { holder, client }],
      // Until the longest wait in it is over.
      queueEnds: Math.max(queueEnds, now() + atLeast),
    });
  }

  leave(key: string, holder: string): void {
    const state = this.#get(key);
    this.#keys.set(key, { ...state, queue: state.queue.filter((place) => place.holder !== holder) });
  }

  /**
   * Offers a free key to the first in the queue that still watches it: a short lease in its name, which it confirms by
   * taking it. Returns that holder, or `undefined` if there is none. If `own` is the first, it is returned without an offer.
   */
  offer(key: string, { own, quietly = false }: { own?: string; quietly?: boolean } = {}): string | undefined {
    for (const { holder, client } of this.#get(key).queue) {
      this.leave(key, holder);
      if (holder === own) return own;
      if (!client.hears(key)) continue;
      this.put(key, holder, OFFER_TIME);
      if (!quietly) this.tell(key, { offeredTo: holder, expiresIn: OFFER_TIME });
      return holder;
    }
    return undefined;
  }

  /** Offers the key, or frees it where nobody waits. */
  passOn(key: string, quietly = false): void {
    if (this.offer(key, { quietly }) !== undefined) return;
    this.#keys.delete(key);
    if (!quietly) this.tell(key, 'look');
  }

  hint(key: string, holder: string): void {
    const [first] = this.#get(key).queue;
    if (first && this.holderOf(key) === holder) this.tell(key, { hintedTo: first.holder });
  }

  /** Sends a wake-up to every client that watches the key. */
  tell(key: string, wakeUp: WakeUp): void {
    for (const client of this.clients) client.tell(key, wakeUp);
  }

  flush(): void {
    this.#keys.clear();
  }

  /** What has not ended yet. */
  #get(key: string): Key {
    const { lease, queue, queueEnds } = this.#keys.get(key) ?? { queue: [], queueEnds: 0 };
    const isQueued = queueEnds > now();
    const kept = { queue: isQueued ? queue : [], queueEnds: isQueued ? queueEnds : 0 };
    return lease && lease.ends > now() ? { ...kept, lease } : kept;
  }
}

/** One watch of a key. */
interface Watcher {
  readonly wake: (wakeUp: WakeUp) => void;
  open: boolean;
}

/** One client of the leases. Each method does what a script of lua/ does in Redis, and awaits nothing, so it is atomic, too. */
class MemoryClient implements LeaseStore {
  /** What others are told of it. */
  readonly name: string | undefined;
  readonly #leases: MemoryLeases;
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** Wake-ups run in the async context in which the client was made. That of the caller that releases holds a lock. */
  readonly #context = new AsyncResource('FencedLockMemoryStore');

  constructor(leases: MemoryLeases, name: string | undefined) {
    this.#leases = leases;
    this.name = name;
  }

  async acquire({ key, holder, leaseTime }: Claim, { enter = 0 }: Look = {}): Promise<AcquireResult> {
    const leases = this.#leases;
    // A key that lost its holder told nobody, so whoever looks makes the offer.
    const isFree = leases.holderOf(key) === undefined;
    const isOwn = isFree && [undefined, holder].includes(leases.offer(key, { own: holder }));
    if (isOwn || leases.holderOf(key) === holder) {
      leases.put(key, holder, leaseTime, this.name);
      return { taken: true, contended: leases.stateOf(key).waiting > 0 };
    }
    if (enter > 0) leases.enter(key, holder, this, enter);
    const { holder: present = '', expiresIn, process } = leases.stateOf(key);
    return { taken: false, expiresIn: Math.max(1, expiresIn), holder: present, ...(process && { process }) };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    return claims.map(({ key, holder, leaseTime }) => {
      const present = this.#leases.holderOf(key);
      if (present === holder) this.#leases.put(key, holder, leaseTime, this.name);
      // Those who wait do not know that nobody has it, and would sleep to the end of the lost lease.
      else if (present === undefined) this.#leases.passOn(key);
      return present === holder ? 'extended' : 'gone';
    });
  }

  async yield({ key, holder, leaseTime }: Claim): Promise<boolean> {
    const present = this.#leases.holderOf(key);
    if (present !== undefined && present !== holder) return false;
    if (this.#leases.offer(key) !== undefined) return false;
    if (present === undefined) this.#leases.tell(key, 'look');
    else this.#leases.put(key, holder, leaseTime, this.name);
    return present !== undefined;
  }

  async release({ key, holder }: Claim, quietly = false): Promise<void> {
    this.#leases.leave(key, holder);
    const present = this.#leases.holderOf(key);
    if (present === undefined || present === holder) this.#leases.passOn(key, quietly);
  }

  async watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const watcher: Watcher = { wake, open: true };
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(watcher));
    this.#leases.clients.add(this);
    return {
      close: () => this.#close(key, watcher),
      get hears() {
        return watcher.open;
      },
    };
  }

  async hint({ key, holder }: Claim): Promise<void> {
    this.#leases.hint(key, holder);
  }

  async transfer({ key, holder, leaseTime }: Claim, successor: string): Promise<boolean> {
    const present = this.#leases.holderOf(key);
    if (present !== holder && present !== successor) return false;
    this.#leases.put(key, successor, leaseTime, this.name);
    return true;
  }

  async inspect(key: string, names?: number): Promise<KeyState> {
    return this.#leases.stateOf(key, names);
  }

  async list(): Promise<readonly KeyState[]> {
    return this.#leases.states();
  }

  async force(key: string, holder: string): Promise<boolean> {
    if (this.#leases.holderOf(key) !== holder) return false;
    this.#leases.passOn(key);
    return true;
  }

  /** The store never goes away, so it never returns. */
  onReturn(): () => void {
    return () => {};
  }

  async close(): Promise<void> {
    for (const [key, watchers] of this.#watchers) for (const watcher of watchers) this.#close(key, watcher);
  }

  /** Whether it watches this key. An offer passes over a client that does not: it has gone. */
  hears(key: string): boolean {
    return this.#watchers.has(key);
  }

  tell(key: string, wakeUp: WakeUp): void {
    for (const watcher of this.#watchers.get(key) ?? []) {
      // As over a network: the one that tells goes on first. By a promise, because fake timers may hold up microtasks.
      void Promise.resolve().then(() => {
        if (watcher.open) this.#context.runInAsyncScope(watcher.wake, undefined, wakeUp);
      });
    }
  }

  #close(key: string, watcher: Watcher): void {
    watcher.open = false;
    const watchers = this.#watchers.get(key);
    if (!watchers?.delete(watcher) || watchers.size > 0) return;
    this.#watchers.delete(key);
    if (this.#watchers.size === 0) this.#leases.clients.delete(this);
  }
}
