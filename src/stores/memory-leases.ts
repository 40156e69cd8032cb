import { isInUse, type KeyState, MOST_WAITERS, type WakeUp } from '../waiting/store.js';
import { ExpiringMap } from './expiring-map.js';

/** For how long a key is kept for the one whose turn it is, until that one takes it; milliseconds. */
const OFFER_TIME = 1_000;

/** One client of the leases. */
export interface Receiver {
  /** What others are told of it. */
  readonly name: string | undefined;
  /** Whether it watches this key. An offer passes over a client that does not: it has gone. */
  hears(key: string): boolean;
  tell(key: string, wakeUp: WakeUp): void;
}

interface Place {
  readonly holder: string;
  readonly receiver: Receiver;
}

/** The leases and queues under one prefix, as Redis would have them. No method awaits anything, so each is atomic. */
export class MemoryLeases {
  readonly receivers = new Set<Receiver>();
  /** `name`: of the holder's client; an offer has none. */
  readonly #leases = new ExpiringMap<{ readonly holder: string; readonly name: string | undefined }>();
  /** A queue is never empty. */
  readonly #queues = new ExpiringMap<readonly Place[]>();

  /** The holder of the key; `undefined` if it is free. */
  holderOf(key: string): string | undefined {
    return this.#leases.get(key)?.holder;
  }

  /** The first in the queue that still watches the key. */
  firstOf(key: string): string | undefined {
    return this.#queue(key).find(({ receiver }) => receiver.hears(key))?.holder;
  }

  /** @param names how many of the waiting processes are named. */
  stateOf(key: string, names = 0): KeyState {
    const { holder, name } = this.#leases.get(key) ?? {};
    const queue = this.#queue(key);
    const waiters = queue.slice(0, names).map(({ receiver }) => receiver.name);
    return {
      key,
      holder,
      expiresIn: Math.ceil(this.#leases.left(key)),
      waiting: queue.length,
      ...(waiters.length > 0 && { waiters }),
      ...(name !== undefined && { process: name }),
    };
  }

  states(): KeyState[] {
    const keys = new Set([...this.#leases.keys(), ...this.#queues.keys()]);
    return [...keys].map((key) => this.stateOf(key, MOST_WAITERS)).filter(isInUse);
  }

  put(key: string, holder: string, leaseTime: number, name?: string): void {
    this.#leases.set(key, { holder, name }, leaseTime);
  }

  enter(key: string, holder: string, receiver: Receiver, atLeast: number): void {
    const queue = this.#queue(key);
    const isIn = queue.some((place) => place.holder === holder);
    // A queue ends as a whole, so it is kept until the longest wait in it is over.
    const time = Math.max(this.#queues.left(key), atLeast);
    this.#queues.set(key, isIn ? queue : [...queue, { holder, receiver }], time);
  }

  leave(key: string, holder: string): void {
    const others = this.#queue(key).filter((place) => place.holder !== holder);
    if (others.length > 0) this.#queues.set(key, others, this.#queues.left(key));
    else this.#queues.delete(key);
  }

  /**
   * Offers a free key to the first in the queue that still watches it: a short lease in its name, which it confirms by
   * taking it. Returns that holder, or `undefined` if there is none. If `own` is the first, it is returned without an offer.
   */
  offer(key: string, { own, quietly = false }: { own?: string; quietly?: boolean } = {}): string | undefined {
    for (let first = this.#queue(key)[0]; first !== undefined; first = this.#queue(key)[0]) {
      this.leave(key, first.holder);
      if (first.holder === own) return own;
      if (!first.receiver.hears(key)) continue;
      this.put(key, first.holder, OFFER_TIME);
      if (!quietly) this.tell(key, { offeredTo: first.holder, expiresIn: OFFER_TIME });
      return first.holder;
    }
    return undefined;
  }

  /** Offers the key, or frees it where nobody waits. */
  passOn(key: string, quietly = false): void {
    if (this.offer(key, { quietly }) !== undefined) return;
    this.#leases.delete(key);
    if (!quietly) this.tell(key, 'look');
  }

  /** Sends a wake-up to every client that watches the key. It arrives later, as over a network. */
  tell(key: string, wakeUp: WakeUp): void {
    for (const receiver of this.receivers) receiver.tell(key, wakeUp);
  }

  flush(): void {
    this.#leases.clear();
    this.#queues.clear();
  }

  #queue(key: string): readonly Place[] {
    return this.#queues.get(key) ?? [];
  }
}
