import type { WakeUp } from '../waiting/store.js';
import { ExpiringMap } from './expiring-map.js';

/** For how long a key is kept for the one whose turn it is, until that one takes it; milliseconds. */
const OFFER_TIME = 1_000;

/** One client of the leases. An offer passes over a client that does not watch the key: it has gone. */
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

interface Lease {
  readonly holder: string;
  /** The name of the holder's client; an offer has none. */
  readonly name: string | undefined;
}

/** The leases and queues under one prefix, as Redis would have them. No method awaits anything, so each is atomic. */
export class MemoryLeases {
  readonly receivers = new Set<Receiver>();
  readonly #leases = new ExpiringMap<Lease>();
  /** A queue is never empty. */
  readonly #queues = new ExpiringMap<readonly Place[]>();

  /** The holder of the key; `undefined` if it is free. */
  holderOf(key: string): string | undefined {
    return this.#leases.get(key)?.holder;
  }

  /** The name of the holder's client. */
  nameOf(key: string): string | undefined {
    return this.#leases.get(key)?.name;
  }

  /** Milliseconds until the lease of the key ends, rounded up; 0 if the key is free. */
  leftOf(key: string): number {
    return Math.ceil(this.#leases.left(key));
  }

  /** The number of processes that wait for the key. */
  waiting(key: string): number {
    return this.#queue(key).length;
  }

  /** The names of the processes that wait for the key, the first in the queue first. */
  waiters(key: string): (string | undefined)[] {
    return this.#queue(key).map(({ name }) => name);
  }

  /** The first in the queue that still watches the key. */
  firstOf(key: string): string | undefined {
    return this.#queue(key).find(({ receiver }) => receiver.hears(key))?.holder;
  }

  put(key: string, holder: string, leaseTime: number, name?: string): void {
    this.#leases.set(key, { holder, name }, leaseTime);
  }

  enter(key: string, holder: string, receiver: Receiver, atLeast: number, name?: string): void {
    const queue = this.#queue(key);
    const isIn = queue.some((place) => place.holder === holder);
    // A queue ends as a whole, so it is kept until the longest wait in it is over.
    const time = Math.max(this.#queues.left(key), atLeast);
    this.#queues.set(key, isIn ? queue : [...queue, { holder, receiver, name }], time);
  }

  leave(key: string, holder: string): void {
    const others = this.#queue(key).filter((place) => place.holder !== holder);
    if (others.length > 0) this.#queues.set(key, others, this.#queues.left(key));
    else this.#queues.delete(key);
  }

  /** Deletes the lease of the key. The queue stays. */
  free(key: string): void {
    this.#leases.delete(key);
  }

  /**
   * Offers a free key to the first in the queue that still watches it: a short lease in its name, which it confirms by
   * taking it. Returns that holder, or `undefined` if there is none. If `own` is the first, it is returned without an offer.
   */
  passOn(key: string, { own, quietly = false }: { own?: string; quietly?: boolean } = {}): string | undefined {
    for (let first = this.#queue(key)[0]; first !== undefined; first = this.#queue(key)[0]) {
      this.leave(key, first.holder);
      if (first.holder === own) return own;
      if (!first.receiver.hears(key)) continue;
      this.put(key, first.holder, OFFER_TIME);
      if (!quietly) this.tell(key, { turn: first.holder, expiresIn: OFFER_TIME });
      return first.holder;
    }
    return undefined;
  }

  /** Sends a wake-up to every client that watches the key. It arrives later, as over a network. */
  tell(key: string, wakeUp: WakeUp): void {
    for (const receiver of this.receivers) receiver.tell(key, wakeUp);
  }

  /** All keys that are held or waited for, and some that were before. */
  keys(): string[] {
    return [...new Set([...this.#leases.keys(), ...this.#queues.keys()])];
  }

  flush(): void {
    this.#leases.clear();
    this.#queues.clear();
  }

  #queue(key: string): readonly Place[] {
    return this.#queues.get(key) ?? [];
  }
}
