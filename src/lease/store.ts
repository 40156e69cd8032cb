/** What an acquire found. */
export type Answer =
  | { readonly taken: true }
  /** `expiresIn`: milliseconds after which the lease of the present holder ends by itself. */
  | { readonly taken: false; readonly expiresIn: number };

/** One lease, as the store knows it. */
export interface Claim {
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
}

/** `gone`: the key is free or somebody else's. An error: nobody knows. */
export type Extension = 'extended' | 'gone' | Error;

export interface Watch {
  /** Idempotent. */
  close(): void;
}

/**
 * Where leases are kept. A store tries once: `acquire.ts` has the only retry loop, `renewal.ts` the only
 * schedule. Every verb may be repeated with the same holder, so that a lost reply is no special case, and every
 * verb settles within a bounded time, whatever the server does.
 */
export interface LeaseStore {
  /**
   * Takes the lease if the key is free **or already this holder's**. Rejects if the answer is not known, after
   * `atMost` ms at the latest (default: a bound of the store).
   */
  acquire(claim: Claim, atMost?: number): Promise<Answer>;
  /** One answer a claim, in order. Never rejects. */
  extend(claims: readonly Claim[]): Promise<Extension[]>;
  /** Gives the lease back and wakes those who wait; no effect unless it is this holder's. */
  release(claim: Claim): Promise<void>;
  /**
   * Calls `wake` whenever it is worth looking at the key again; a hint, never proof. Resolves once the server
   * has confirmed that it will send them, so that a look after that misses nothing; rejects after `atMost` ms.
   */
  watch(key: string, wake: () => void, atMost?: number): Promise<Watch>;
  /** Stops timers and closes connections that the store opened itself. */
  close(): Promise<void>;
}
