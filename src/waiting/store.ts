/** The result of an acquire. */
export type AcquireResult =
  /**
   * `shared`: the error for which another caller may hold the key, too; only Postgres serializes transactions then.
   * `contended`: whether other processes wait for the key; `undefined` if the store does not say. `key`: the name of the
   * permit that was taken, where the claim is for any one of some.
   */
  | { readonly taken: true; readonly shared?: Error; readonly contended?: boolean; readonly key?: string }
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

/** The command was never sent, because the store's client had no connection. There is nothing to undo. */
export class NotAsked extends Error {}

/** The server refuses this client or this command. Asking again is useless until the configuration is changed. */
export class Denied extends Error {}

/** Whether an error is a denial, or was caused by one. */
export function isDenial(error: unknown): boolean {
  return error instanceof Denied || (error instanceof NotAsked && error.cause instanceof Denied);
}

/**
 * Under the names of the key is a value that this package did not write. The server is well, and so are all other keys;
 * `force` deletes the value.
 */
export class ForeignValue extends Error {}

/** Whether an error is about one key, or was caused by one that is. */
export function isForeignValue(error: unknown): boolean {
  return error instanceof ForeignValue || (error instanceof Error && error.cause instanceof ForeignValue);
}

/** One lease, as the store knows it. */
export interface Claim {
  /**
   * A key, or the name of a permit (`base/permits.ts`). To `acquire`, `watch` and `release`, it may be that of any one of some
   * permits. All permits of a key have one queue: a permit is offered to the first that may work beside those at work.
   */
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
}

/** `gone`: the key is free or has another holder. An error: unknown. */
export type Extension = 'extended' | 'gone' | Error;

/**
 * A hint, never proof. `look`: look at the key. `offeredTo`: the key is offered to that holder for `expiresIn`
 * milliseconds. `hintedTo`: the key is about to be offered to that holder, behind a COMMIT.
 */
export type WakeUp =
  | 'look'
  | { readonly offeredTo: string; readonly expiresIn: number }
  | { readonly hintedTo: string };

export interface Watch {
  /** Ends the subscription. Idempotent. */
  close(): void;
  /** Whether wake-ups can arrive at the moment. */
  readonly hears?: boolean;
}

export interface Look {
  /** How long to keep a place in the queue if the key is not free; milliseconds. Default: no place. */
  readonly enter?: number | undefined;
  /** How long the answer may take; milliseconds. Default: the store's own limit. */
  readonly atMost?: number | undefined;
}

/** The state of a key in the store. */
export interface KeyState {
  readonly key: string;
  /** `undefined` if nobody holds the key. */
  readonly holder: string | undefined;
  /** The name of the holder's process, where the store knows it. */
  readonly process?: string;
  /** Milliseconds until the lease expires, unless it is extended. */
  readonly expiresIn: number;
  /** The number of other processes that wait. Callers in the holder's process queue there and are not counted. */
  readonly waiting: number;
  /**
   * The names of the processes that wait, as many as were asked for. The first of the queue is first; of several
   * independent nodes there is no order. `undefined` in place of a name that the store does not know. Absent where nobody
   * waits, and where they cannot be read.
   */
  readonly waiters?: readonly (string | undefined)[];
  /**
   * What the store has under the key's names that is neither a lease nor a queue. It blocks the key until `force`
   * deletes it.
   */
  readonly problem?: string;
}

/** How many of the processes that wait for a key are named; the others are only counted. */
export const MOST_WAITERS = 100;

/** Whether `list` shows the key. */
export function isInUse({ holder, waiting, problem }: KeyState): boolean {
  return holder !== undefined || waiting > 0 || problem !== undefined;
}

/**
 * The port for leases. A store tries once: `acquire.ts` has the only retry loop, and `renewal.ts` the only
 * schedule. Every method may be repeated with the same holder, so a lost reply needs no special case. Every method
 * settles within a bounded time, whatever the server does.
 *
 * A store may queue the waiting processes. It then offers a free key to the first one, as a short lease in its name.
 * Taking the lease, or extending it, confirms the offer. A store without a queue wakes all of them.
 */
export interface LeaseStore {
  /** Whether `acquire` succeeds without the server while that cannot be reached. */
  readonly goesOnWithout?: boolean;
  /** Whether the key's server is known to be away, so that the next `acquire` succeeds without it. */
  isKnownAway?(key: string): boolean;
  /**
   * Whether each look of one process needs another holder: what a look took in vain is given back, and that may be executed
   * behind the next look.
   */
  readonly newHolderPerLook?: boolean;
  /** A name of the server that has the key now. Keys of one server fail together. Absent: all keys do. */
  serverOf?(key: string): string;
  /**
   * Takes the lease if the key is free and no other process is first in the queue, **or if this holder already has
   * it**. Rejects if the result is unknown; with `NotAsked` if the command was not sent.
   */
  acquire(claim: Claim, look?: Look): Promise<AcquireResult>;
  /** One answer for each claim, in the same order. Never rejects. */
  extend(claims: readonly Claim[]): Promise<Extension[]>;
  /**
   * Passes the key on if another process waits for it and resolves to `false`. Otherwise extends the lease to its full
   * time and resolves to `true`.
   */
  yield(claim: Claim): Promise<boolean>;
  /**
   * Releases the lease of this holder and its place in the queue. Has no effect on other holders. `quietly`: sends no
   * wake-up, because no other process has seen this holder.
   */
  release(claim: Claim, quietly?: boolean): Promise<void>;
  /**
   * Calls `wake` whenever a look at the key is worth it. Resolves when the server has confirmed the subscription, so
   * that a later look misses nothing. A store without wake-ups resolves to a watch whose `hears` is false.
   */
  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch>;
  /**
   * Tells the first process of the queue that this holder is about to commit. Absent where the store cannot tell it:
   * without a queue, and without wake-ups.
   */
  readonly hint?: ((claim: Claim) => Promise<void>) | undefined;
  /** Transfers the lease to `successor`. Resolves to `false` if neither of the two holds it. */
  transfer(claim: Claim, successor: string): Promise<boolean>;
  /** @param names how many of the waiting processes are named, at most `MOST_WAITERS`. Default: none. */
  inspect(key: string, names?: number): Promise<KeyState>;
  /** The keys that are held or waited for during the whole scan. */
  list(): Promise<readonly KeyState[]>;
  /**
   * Takes the key from `holder` and passes it on. Resolves to `false` if that holder does not have it any more. Also
   * deletes a `problem`, whoever made it.
   */
  force(key: string, holder: string): Promise<boolean>;
  /**
   * Calls the listener when a server is reachable again. It may be a promoted replica that missed earlier commands.
   * Returns the function that removes the listener.
   */
  onReturn(listener: () => void): () => void;
  /** Stops timers and closes the connections that the store opened. */
  close(): Promise<void>;
}
