/** What an acquire found. */
export type AcquireResult =
  /**
   * `shared`: why others may have it too; only Postgres keeps order at the moment. `contended`: whether other processes
   * wait for it; `undefined` where the store does not say.
   */
  | { readonly taken: true; readonly shared?: Error; readonly contended?: boolean }
  /**
   * `expiresIn`: milliseconds after which the lease of the present holder ends by itself. `lookIn`: when to look again, if
   * that is before. `split`: nobody has it, because several asked at once and none had enough votes: look again soon, and
   * not in step with the others.
   */
  | {
      readonly taken: false;
      readonly expiresIn: number;
      readonly holder?: string;
      /** The name of that holder's process, where the store knows it. */
      readonly process?: string;
      readonly lookIn?: number;
      readonly split?: boolean;
    };

/** A look that was never sent, so that there is nothing to undo: the store's client had no connection all the while. */
export class NotAsked extends Error {}

/** The server does not let this client in, or not do this: asking again changes nothing until somebody mends it. */
export class Denied extends Error {}

/** Whether an error is a denial, or stands for one. */
export function isDenial(error: unknown): boolean {
  return error instanceof Denied || (error instanceof NotAsked && error.cause instanceof Denied);
}

/** One lease, as the store knows it. */
export interface Claim {
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
}

/** `gone`: the key is free or somebody else's. An error: nobody knows. */
export type Extension = 'extended' | 'gone' | Error;

/**
 * A hint, never proof: `look`; whose turn it is and for how long the key is kept for that holder, in milliseconds; or whose turn
 * it will be as soon as the COMMIT that is under way is done.
 */
export type WakeUp = 'look' | { readonly turn: string; readonly expiresIn: number } | { readonly next: string };

export interface Watch {
  /** Idempotent. */
  close(): void;
  /** Whether wake-ups can be heard at the moment. */
  readonly hears?: boolean;
}

export interface Look {
  /** For how long a place in the queue is wanted if the key is not free; milliseconds. Default: none. */
  readonly enter?: number;
  /** How long the answer may take; milliseconds. Default: a bound of the store. */
  readonly atMost?: number;
}

/** What a store's client knows of its connection. */
export interface Reach {
  /** Whether a command would be sent at once, or make it connect. */
  readonly ready: boolean;
  /** Whether a command would be kept back until it is connected again. */
  readonly away: boolean;
  /** Whether its machine has just said that nobody is there: what a server had in its memory is gone then. */
  readonly refused: boolean;
  /** In words, for an error. */
  readonly says: string;
}

/** What is known of a key. */
export interface KeyState {
  readonly key: string;
  /** `undefined` where nobody has it. */
  readonly holder: string | undefined;
  /** The name of the holder's process, where the store knows it. */
  readonly process?: string;
  /** Milliseconds after which its lease ends by itself, unless it is extended. */
  readonly expiresIn: number;
  /** Processes that wait for it. */
  readonly waiting: number;
  /** What the store has under its names that is no lease and no queue, so that nobody can have it: `force` deletes that. */
  readonly problem?: string;
}

/** Whether an operator has something to see. */
export function isInUse({ holder, waiting, problem }: KeyState): boolean {
  return holder !== undefined || waiting > 0 || problem !== undefined;
}

/**
 * Where leases are kept. A store tries once: `contention.ts` has the only retry loop, `renewal.ts` the only
 * schedule. Every verb may be repeated with the same holder, so that a lost reply is no special case, and every
 * verb settles within a bounded time, whatever the server does.
 *
 * A store may keep those who wait in a queue. It then gives a free key to the first of them, as a short lease in that
 * holder's name: taking it confirms it. One without a queue wakes them all.
 */
export interface LeaseStore {
  /** `undefined`: nobody knows. */
  readonly reach?: Reach;
  /**
   * Takes the lease if the key is free and nobody waits before this holder, **or if it is already this holder's**.
   * Rejects if the answer is not known; with `NotAsked` if there can be none.
   */
  acquire(claim: Claim, look?: Look): Promise<AcquireResult>;
  /** One answer a claim, in order. Never rejects. */
  extend(claims: readonly Claim[]): Promise<Extension[]>;
  /** Passes the key on if another process waits for it (`false`), and gives the lease its full time again if not. */
  yield(claim: Claim): Promise<boolean>;
  /**
   * Gives back what this holder has, a lease or a place in the queue; no effect on anybody else's. `quietly`: wakes
   * nobody, because nobody has come to know of it.
   */
  release(claim: Claim, quietly?: boolean): Promise<void>;
  /**
   * Calls `wake` whenever it is worth looking at the key again. Resolves once the server has confirmed that it will
   * send them, so that a look after that misses nothing; or with a watch that hears nothing, where there are none.
   */
  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch>;
  /** Tells the first who waits that this holder is about to give the key back. A store without an order has nobody to tell. */
  hint?(claim: Claim): Promise<void>;
  /** Puts the lease into the name of `successor`; `false` if it is neither's any more. */
  transfer(claim: Claim, successor: string): Promise<boolean>;
  inspect(key: string): Promise<KeyState>;
  /** The keys that somebody has or waits for, as far as they are there from beginning to end. */
  list(): Promise<readonly KeyState[]>;
  /**
   * Takes the key from this holder, whoever asks, and passes it on; `false` if it is not this holder's any more. Deletes what
   * is a `problem`, of whatever holder.
   */
  force(key: string, holder: string): Promise<boolean>;
  /**
   * Calls the listener when a server is back that was away: another one may stand in its place, which has not heard all
   * that was said before. The function that it gives ends that.
   */
  onReturn(listener: () => void): () => void;
  /** Stops timers and closes connections that the store opened itself. */
  close(): Promise<void>;
}
