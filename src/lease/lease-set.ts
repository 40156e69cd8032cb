import { offAbort, onAbort } from '../base/abort-listeners.js';
import type { LockLostError } from '../base/errors.js';
import type { LockVia } from '../base/messages.js';
import type { Lease, LeaseUser } from './lease.js';
import type { LeaseRequest } from './queue/request.js';
import type { Turn } from './queue/turn.js';
import type { WaitingRoom } from './queue/waiting-room.js';

/**
 * What one call was leases: a lease of each of its keys. Its keys are sorted, so that two calls that want the same ones
 * take them in the same order, and neither waits for what the other has while it has what the other waits for.
 */
export class LeaseSet {
  readonly keys: readonly string[];
  readonly #turns: readonly Turn[];

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
    this.keys = Object.freeze(turns.map(({ lease }) => lease.key));
  }

  get leases(): readonly Lease[] {
    return this.#turns.map(({ lease }) => lease);
  }

  /** The first of the keys: what messages name. */
  get key(): string {
    return this.keys[0] as string;
  }

  get holders(): readonly string[] {
    return this.#turns.map(({ lease }) => lease.holder);
  }

  /** How the call came by each. */
  get via(): readonly LockVia[] {
    return this.#turns.map(({ via }) => via);
  }

  get leaseTime(): number {
    return Math.min(...this.#turns.map(({ lease }) => lease.leaseTime));
  }

  /** Milliseconds for which all of it still stands, renewals aside. */
  get remaining(): number {
    return Math.min(...this.#turns.map(({ lease }) => lease.remaining));
  }

  /** Whether others may have some of them too: the store could not be asked, and Postgres alone keeps order. */
  get shared(): boolean {
    return this.#turns.some(({ lease }) => lease.shared);
  }

  /** For how long nobody else can have had any of the keys; milliseconds. */
  get age(): number {
    // Somebody else is at work as rightfully: who stands in our way may be that one, and it is well.
    if (this.#turns.some((turn) => !turn.alone())) return Number.POSITIVE_INFINITY;
    const ages = this.#turns.map(({ lease }) => lease.age);
    return ages.includes(Number.POSITIVE_INFINITY) ? Number.POSITIVE_INFINITY : Math.min(...ages);
  }

  /** Why a part of it is lost, or `undefined` while all is held. */
  get loss(): LockLostError | undefined {
    for (const { lease } of this.#turns) if (lease.loss) return lease.loss;
    return undefined;
  }

  attach(user: LeaseUser): () => void {
    const detach = this.#turns.map(({ lease }) => lease.attach(user));
    return () => {
      for (const end of detach) end();
    };
  }

  /** Asks the store now; what is gone is lost. Resolves to whether all of it is gone. */
  async look(): Promise<boolean> {
    const gone = await Promise.all(this.#turns.map((turn) => turn.look()));
    return gone.every((each) => each);
  }

  /** Gives up a right that Postgres says is somebody else's. */
  lose(cause: unknown): void {
    for (const { lease } of this.#turns) lease.lose('gone', cause);
  }

  /** Passes the key to the next caller of this process; of several keys none. */
  pass<T>(take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined {
    return this.#turns.length === 1 ? this.#turns[0]?.pass(take) : undefined;
  }

  /** Its COMMIT is under way. Who waits for several keys has not had its turn yet. */
  hint(): void {
    if (this.#turns.length === 1) this.#turns[0]?.hint();
  }

  /** Gives all of it back. Idempotent; never throws. */
  release(): void {
    for (const turn of this.#turns) turn.end();
  }
}

/** All of the keys, or none; the first one's turn is had already. */
export function withOthers(
  first: Turn,
  room: WaitingRoom,
  keys: readonly string[],
  request: LeaseRequest,
): LeaseSet | Promise<LeaseSet> {
  return keys.length === 1 ? new LeaseSet([first]) : withEach(first, room, keys, request);
}

/** A lease that is lost while it waits for the others ends that. */
async function withEach(
  first: Turn,
  room: WaitingRoom,
  keys: readonly string[],
  request: LeaseRequest,
): Promise<LeaseSet> {
  const turns = [first];
  // Not AbortSignal.any: what that makes is remembered by the caller's signal, which may live as long as the process.
  const end = new AbortController();
  const { signal } = end;
  const user = { lost: (loss: LockLostError) => end.abort(loss), beat: () => {} };
  const aborted = { handleEvent: () => end.abort(request.signal?.reason) };
  onAbort(request.signal, aborted);
  if (request.signal?.aborted) aborted.handleEvent();
  const { leaseTime, renew, deadline, waitTime, mayShare, preopen } = request;
  const more = { leaseTime, renew, deadline, waitTime, mayShare, signal, ...(preopen && { preopen }) };
  const detach = [first.lease.attach(user)];
  try {
    if (first.lease.loss) throw first.lease.loss;
    for (const key of keys.slice(1)) {
      const turn = await room.enter(key, more);
      turns.push(turn);
      detach.push(turn.lease.attach(user));
    }
    return new LeaseSet(turns);
  } catch (error) {
    for (const turn of turns) turn.end();
    throw error;
  } finally {
    offAbort(request.signal, aborted);
    for (const end of detach) end();
  }
}
