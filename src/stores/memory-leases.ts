import { now } from '../base/clock.js';
import { isInUse, type KeyState, MOST_WAITERS, type WakeUp } from '../waiting/store.js';

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

/** Both end by themselves, a queue as a whole. An offer has no `name`. */
interface Key {
  readonly lease?: { readonly holder: string; readonly name?: string | undefined; readonly ends: number };
  readonly queue: ReadonlyArray<{ readonly holder: string; readonly receiver: Receiver }>;
  readonly queueEnds: number;
}

/** The leases and queues under one prefix, as Redis would have them. No method awaits anything, so each is atomic. */
export class MemoryLeases {
  readonly receivers = new Set<Receiver>();
  /** Whoever takes a key or enters its queue releases it, even if it has ended by then, and a free key is not kept. */
  readonly #keys = new Map<string, Key>();

  /** The holder of the key; `undefined` if it is free. */
  holderOf(key: string): string | undefined {
    return this.#get(key).lease?.holder;
  }

  /** The first in the queue that still watches the key. */
  firstOf(key: string): string | undefined {
    return this.#get(key).queue.find(({ receiver }) => receiver.hears(key))?.holder;
  }

  /** @param names how many of the waiting processes are named. */
  stateOf(key: string, names = 0): KeyState {
    const { lease: { holder, name, ends } = { ends: now() }, queue } = this.#get(key);
    const waiters = queue.slice(0, names).map(({ receiver }) => receiver.name);
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

  enter(key: string, holder: string, receiver: Receiver, atLeast: number): void {
    const { lease, queue, queueEnds } = this.#get(key);
    const isIn = queue.some((place) => place.holder === holder);
    this.#keys.set(key, {
      ...(lease && { lease }),
      queue: isIn ? queue : [...queue, { holder, receiver }],
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
    for (const { holder, receiver } of this.#get(key).queue) {
      this.leave(key, holder);
      if (holder === own) return own;
      if (!receiver.hears(key)) continue;
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

  /** Sends a wake-up to every client that watches the key. It arrives later, as over a network. */
  tell(key: string, wakeUp: WakeUp): void {
    for (const receiver of this.receivers) receiver.tell(key, wakeUp);
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
