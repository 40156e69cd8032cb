import { AsyncResource } from 'node:async_hooks';
import { randomInt } from 'node:crypto';
import { now } from '../base/clock.js';
import { permitName, permitOf } from '../base/permits.js';
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
  /** By the number of the permit; a lock has one alone. */
  readonly leases: ReadonlyMap<
    number,
    { readonly holder: string; readonly name?: string | undefined; readonly ends: number }
  >;
  readonly queue: ReadonlyArray<{ readonly holder: string; readonly client: MemoryClient; readonly most: number }>;
  readonly queueEnds: number;
}

/** Where the lease that a claim is for is, or may be. */
interface Spot {
  /** Locks are known by their keys, and all permits of a key by the name of the first. */
  readonly id: string;
  readonly first: number;
  readonly last: number;
  /** The lease is given only while fewer than this are. */
  readonly most: number;
  /** The name of the permit with that number. */
  nameOf(number: number): string;
}

function spotOf(name: string): Spot {
  const permit = permitOf(name);
  if (permit === undefined) return { id: name, first: 0, last: 0, most: 1, nameOf: () => name };
  return { ...permit, id: permitName(permit.key, 0), nameOf: (number) => permitName(permit.key, number) };
}

/** The leases and queues under one prefix, as Redis would have them. No method awaits anything, so each is atomic. */
class MemoryLeases {
  readonly clients = new Set<MemoryClient>();
  /** Whoever takes a key or enters its queue releases it, even if it has ended by then, and a free key is not kept. */
  readonly #keys = new Map<string, Key>();

  /** Which of the leases at this spot the holder has. */
  numberOf({ id, first, last }: Spot, holder: string): number | undefined {
    const [number] =
      [...this.#get(id).leases].find(([at, lease]) => lease.holder === holder && at >= first && at <= last) ?? [];
    return number;
  }

  holderOf({ id, first }: Spot): string | undefined {
    return this.#get(id).leases.get(first)?.holder;
  }

  /** The first that is free, where one may be given. */
  freeAt({ id, first, last, most }: Spot): number | undefined {
    const { leases } = this.#get(id);
    if (leases.size >= most) return undefined;
    for (let number = first; number <= last; number++) if (!leases.has(number)) return number;
    return undefined;
  }

  /** @param names how many of the waiting processes are named. */
  stateOf(key: string, names = 0): KeyState {
    const { id, first, last } = spotOf(key);
    const { leases, queue } = this.#get(id);
    // Of any one of some permits, the one that ends first.
    const [next] = [...leases]
      .filter(([at]) => at >= first && at <= last)
      .sort(([, one], [, other]) => one.ends - other.ends);
    const { holder, name, ends } = next?.[1] ?? { ends: now() };
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
    const namesAt = (id: string): readonly string[] => {
      const taken = [...this.#get(id).leases.keys()].toSorted((one, other) => one - other);
      return taken.length === 0 ? [id] : taken.map((number) => spotOf(id).nameOf(number));
    };
    const names = [...this.#keys.keys()].flatMap(namesAt);
    return names.map((name) => this.stateOf(name, MOST_WAITERS)).filter(isInUse);
  }

  put({ id }: Spot, number: number, holder: string, leaseTime: number, name?: string): void {
    const { leases, ...state } = this.#get(id);
    const lease = { holder, name, ends: now() + leaseTime };
    this.#keys.set(id, { ...state, leases: new Map([...leases, [number, lease]]) });
  }

  drop({ id }: Spot, number: number): void {
    const { leases, ...state } = this.#get(id);
    const kept = new Map([...leases].filter(([at]) => at !== number));
    if (kept.size === 0 && state.queue.length === 0) this.#keys.delete(id);
    else this.#keys.set(id, { ...state, leases: kept });
  }

  enter({ id, most }: Spot, holder: string, client: MemoryClient, atLeast: number): void {
    const { leases, queue, queueEnds } = this.#get(id);
    const isIn = queue.some((place) => place.holder === holder);
    this.#keys.set(id, {
      leases,
      queue: isIn ? queue : [...queue, { holder, client, most }],
      // Until the longest wait in it is over.
      queueEnds: Math.max(queueEnds, now() + atLeast),
    });
  }

  leave({ id }: Spot, holder: string): void {
    const state = this.#get(id);
    this.#keys.set(id, { ...state, queue: state.queue.filter((place) => place.holder !== holder) });
  }

  /**
   * Offers what is free to the first in the queue that still watch it: a short lease in its name, which it confirms by
   * taking it. One that has to wait until fewer are at work keeps all behind it waiting. Returns who waits first then, which
   * may be `own`, and whether somebody was made an offer.
   */
  serve(spot: Spot, { own, quietly = false }: { own?: string; quietly?: boolean } = {}) {
    let isTold = false;
    const { queue } = this.#get(spot.id);
    for (const [at, { holder, client, most }] of queue.entries()) {
      if (holder === own) return { first: own, isTold };
      const hears = client.hears(spot.id);
      const number = this.freeAt({ ...spot, first: 0, last: most - 1, most });
      // One that has gone is not in the way of the next one, and otherwise keeps its place.
      const isInTheWay = !hears && this.#get(spot.id).leases.size < (queue[at + 1]?.most ?? 0);
      if (number === undefined && !isInTheWay) return { first: holder, isTold };
      if (number !== undefined && hears) {
        this.put(spot, number, holder, OFFER_TIME);
        if (!quietly) this.tell(spot.id, { offeredTo: holder, expiresIn: OFFER_TIME });
        isTold = true;
      }
      this.leave(spot, holder);
    }
    return { first: undefined, isTold };
  }

  /** Offers what is free. Where nobody is known to wait, all look. */
  passOn(spot: Spot, quietly = false): void {
    const { first, isTold } = this.serve(spot, { quietly });
    if (first === undefined && !isTold && !quietly && this.freeAt(spot) !== undefined) this.tell(spot.id, 'look');
  }

  hint(spot: Spot, holder: string): void {
    const [first] = this.#get(spot.id).queue;
    if (first && this.holderOf(spot) === holder) this.tell(spot.id, { hintedTo: first.holder });
  }

  /** Sends a wake-up to every client that watches the key. */
  tell(id: string, wakeUp: WakeUp): void {
    for (const client of this.clients) client.tell(id, wakeUp);
  }

  flush(): void {
    this.#keys.clear();
  }

  /** What has not ended yet. */
  #get(id: string): Key {
    const { leases, queue, queueEnds } = this.#keys.get(id) ?? { leases: new Map(), queue: [], queueEnds: 0 };
    const isQueued = queueEnds > now();
    const held = new Map([...leases].filter(([, { ends }]) => ends > now()));
    return { leases: held, queue: isQueued ? queue : [], queueEnds: isQueued ? queueEnds : 0 };
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
    const spot = spotOf(key);
    let number = leases.numberOf(spot, holder);
    // A key that lost its holder told nobody, so whoever looks makes the offer.
    if (number === undefined && [undefined, holder].includes(leases.serve(spot, { own: holder }).first)) {
      number = leases.freeAt(spot);
    }
    if (number !== undefined) {
      leases.leave(spot, holder);
      leases.put(spot, number, holder, leaseTime, this.name);
      return { taken: true, contended: leases.stateOf(key).waiting > 0, key: spot.nameOf(number) };
    }
    if (enter > 0) leases.enter(spot, holder, this, enter);
    const { holder: present = '', expiresIn, process } = leases.stateOf(key);
    return { taken: false, expiresIn: Math.max(1, expiresIn), holder: present, ...(process && { process }) };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    return claims.map(({ key, holder, leaseTime }) => {
      const spot = spotOf(key);
      const present = this.#leases.holderOf(spot);
      if (present === holder) this.#leases.put(spot, spot.first, holder, leaseTime, this.name);
      // Those who wait do not know that nobody has it, and would sleep to the end of the lost lease.
      else if (present === undefined) this.#leases.passOn(spot);
      return present === holder ? 'extended' : 'gone';
    });
  }

  async yield({ key, holder, leaseTime }: Claim): Promise<boolean> {
    const spot = spotOf(key);
    const present = this.#leases.holderOf(spot);
    if (present !== undefined && present !== holder) return false;
    this.#leases.drop(spot, spot.first);
    if (this.#leases.serve(spot).isTold) return false;
    if (present === undefined) this.#leases.tell(spot.id, 'look');
    else this.#leases.put(spot, spot.first, holder, leaseTime, this.name);
    return present !== undefined;
  }

  async release({ key, holder }: Claim, quietly = false): Promise<void> {
    const spot = spotOf(key);
    this.#leases.leave(spot, holder);
    const number = this.#leases.numberOf(spot, holder);
    if (number !== undefined) this.#leases.drop(spot, number);
    this.#leases.passOn(spot, quietly);
  }

  async watch(name: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const key = spotOf(name).id;
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
    this.#leases.hint(spotOf(key), holder);
  }

  async transfer({ key, holder, leaseTime }: Claim, successor: string): Promise<boolean> {
    const spot = spotOf(key);
    const present = this.#leases.holderOf(spot);
    if (present !== holder && present !== successor) return false;
    this.#leases.put(spot, spot.first, successor, leaseTime, this.name);
    return true;
  }

  async inspect(key: string, names?: number): Promise<KeyState> {
    return this.#leases.stateOf(key, names);
  }

  async list(): Promise<readonly KeyState[]> {
    return this.#leases.states();
  }

  async force(key: string, holder: string): Promise<boolean> {
    const spot = spotOf(key);
    if (this.#leases.holderOf(spot) !== holder) return false;
    this.#leases.drop(spot, spot.first);
    this.#leases.passOn(spot);
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
