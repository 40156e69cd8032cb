import { now } from '../../base/clock.js';
import { MOST_REFUSALS, type NotedRefusal, REFUSALS_KEPT, type Refusal } from '../../base/refusal.js';
import type { WakeUp } from '../store.js';

/** One client of the leases: whose watches tell that it is there. */
export interface Receiver {
  /** Whether it watches this key. */
  hears(key: string): boolean;
  tell(key: string, wakeUp: WakeUp): void;
}

interface Place {
  readonly holder: string;
  readonly receiver: Receiver;
  /** The name of its client. */
  readonly name: string | undefined;
}

/** What is kept of one key. */
interface Entry {
  holder: string | undefined;
  /** The name of the holder's client; an offer has none. */
  name: string | undefined;
  leaseEnds: number;
  queue: Place[];
  queueEnds: number;
}

/** How many keys there are before those that nobody needs any more are looked for. */
const SWEEP_AT = 1_024;

/** The keys of one prefix: what Redis would have of them. Nothing here waits, so each method is one step for all others. */
export class MemoryLeases {
  readonly receivers = new Set<Receiver>();
  readonly #entries = new Map<string, Entry>();
  #sweepAt = SWEEP_AT;
  #refusals: ReadonlyArray<{ readonly at: number; readonly refusal: Omit<NotedRefusal, 'ago'> }> = [];

  /** Who has the key now. */
  holderOf(key: string): string | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.leaseEnds > now() ? entry.holder : undefined;
  }

  /** The name of the client of who has the key now. */
  nameOf(key: string): string | undefined {
    return this.holderOf(key) === undefined ? undefined : this.#entries.get(key)?.name;
  }

  /** Milliseconds that its lease still has, in whole ones; 0 if nobody has it. */
  leftOf(key: string): number {
    return Math.ceil(Math.max(0, (this.#entries.get(key)?.leaseEnds ?? 0) - now()));
  }

  /** How many wait for it. */
  waiting(key: string): number {
    return this.#queue(key).length;
  }

  /** The names of those who wait for it, the first first. */
  waiters(key: string): (string | undefined)[] {
    return this.#queue(key).map(({ name }) => name);
  }

  /** The first that waits for it. */
  firstOf(key: string): string | undefined {
    return this.#queue(key)[0]?.holder;
  }

  put(key: string, holder: string, leaseTime: number, name?: string): void {
    const entry = this.#entry(key);
    entry.holder = holder;
    entry.name = name;
    entry.leaseEnds = now() + leaseTime;
  }

  enter(key: string, holder: string, receiver: Receiver, atLeast: number, name?: string): void {
    const entry = this.#entry(key);
    const queue = this.#queue(key);
    if (!queue.some((place) => place.holder === holder)) entry.queue = [...queue, { holder, receiver, name }];
    // For all of them as long as for the one that waits longest.
    entry.queueEnds = Math.max(queue.length === 0 ? 0 : entry.queueEnds, now() + atLeast);
  }

  leave(key: string, holder: string): void {
    const entry = this.#entries.get(key);
    if (entry) entry.queue = entry.queue.filter((place) => place.holder !== holder);
  }

  /** Nobody's any more. Those who wait keep their places. */
  free(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.leaseEnds = 0;
    if (this.#queue(key).length === 0) this.#entries.delete(key);
  }

  /**
   * Offers a key that is nobody's to the first that waits for it and still watches it: a short lease in its name, which it
   * confirms by taking it. Answers with that holder; with `own`, without an offer, where that one is the first.
   */
  passOn(key: string, { offerTime, own, quietly = false }: { offerTime: number; own?: string; quietly?: boolean }) {
    for (let first = this.#queue(key)[0]; first !== undefined; first = this.#queue(key)[0]) {
      this.leave(key, first.holder);
      if (first.holder === own) return own;
      if (!first.receiver.hears(key)) continue;
      this.put(key, first.holder, offerTime);
      if (!quietly) this.tell(key, { turn: first.holder, expiresIn: offerTime });
      return first.holder;
    }
    return undefined;
  }

  /** Everybody who watches the key, behind what happens now. */
  tell(key: string, wakeUp: WakeUp): void {
    for (const receiver of this.receivers) receiver.tell(key, wakeUp);
  }

  /** What somebody has or waits for, and some that nobody does any more. */
  keys(): string[] {
    return [...this.#entries.keys()];
  }

  flush(): void {
    this.#entries.clear();
    this.#refusals = [];
  }

  noteRefusals(refusals: readonly Refusal[], name: string | undefined): void {
    const named = name === undefined ? {} : { process: name };
    const noted = refusals.map((refusal) => ({ at: now(), refusal: { ...refusal, ...named } }));
    this.#refusals = [...this.#refusals, ...noted].slice(-MOST_REFUSALS);
  }

  refusals(): readonly NotedRefusal[] {
    const all = this.#refusals.map(({ at, refusal }) => ({ ...refusal, ago: now() - at }));
    return all.filter(({ ago }) => ago <= REFUSALS_KEPT);
  }

  #queue(key: string): readonly Place[] {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.queueEnds > now() ? entry.queue : [];
  }

  #entry(key: string): Entry {
    const known = this.#entries.get(key);
    if (known) return known;
    if (this.#entries.size >= this.#sweepAt) this.#sweep();
    const entry: Entry = { holder: undefined, name: undefined, leaseEnds: 0, queue: [], queueEnds: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Leases that nobody gave back end without anybody noticing. */
  #sweep(): void {
    for (const key of this.#entries.keys()) {
      if (this.holderOf(key) === undefined && this.#queue(key).length === 0) this.#entries.delete(key);
    }
    this.#sweepAt = Math.max(SWEEP_AT, 2 * this.#entries.size);
  }
}
