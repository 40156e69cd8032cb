import { after, type Deadline, now, unlessAborted } from '../base/clock.js';
import { LockTimeoutError, LockUnavailableError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { Lease } from './lease.js';
import type { LocalQueue, Turn } from './queue.js';
import type { Answer, Claim, LeaseStore, Watch } from './store.js';

/** First pause after a store that gave no answer; it doubles up to the longest. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 500;
/** A look gets what is left of the wait time, and the first at least so much that a healthy network answers; ms. */
const LEAST_LOOK = 250;
/** How often to look while wake-ups cannot be heard. */
const DEAF_PAUSE = 250;

export interface Wait {
  readonly deadline: Deadline;
  /** As the caller gave it, for messages. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  /** Called whenever the caller is about to wait, and when it has given up. */
  onWait(): void;
}

export interface Held {
  readonly lease: Lease;
  readonly turn: Turn;
}

/**
 * The lease of `claim.key`: local queue, then the store. The only loop in this package that tries again for a lease.
 *
 * Look, subscribe and have that acknowledged, look again, sleep. Whatever was released before the second look is
 * seen by it; whatever is released after it sends a wake-up. A lost wake-up costs the rest of the holder's lease.
 */
export async function acquire(
  store: LeaseStore,
  queue: LocalQueue,
  claim: Claim,
  wait: Wait,
  emit: Emit,
): Promise<Held> {
  wait.signal?.throwIfAborted();
  const bell = new Bell();
  const turn = await queue.enter(claim.key, () => {
    wait.onWait();
    return bell.sleep(wait.deadline.remaining, wait.signal);
  });
  if (turn === undefined) {
    wait.signal?.throwIfAborted();
    throw new LockTimeoutError(claim.key, `${wait.waitTime} ms`);
  }
  bell.ring();
  try {
    return { lease: await contend(store, claim, wait, emit, bell), turn };
  } catch (error) {
    turn.leave();
    wait.onWait();
    throw error;
  }
}

async function contend(store: LeaseStore, claim: Claim, wait: Wait, emit: Emit, bell: Bell): Promise<Lease> {
  let watch: Watch | undefined;
  let pause = FIRST_PAUSE;
  let leastLook = LEAST_LOOK;
  // The look after which the store may have the lease under our name without our knowing.
  let inDoubt: Promise<Answer> | undefined;
  try {
    for (;;) {
      wait.signal?.throwIfAborted();
      bell.reset();
      const sentAt = now();
      let unanswered: unknown;
      let nextLook: number;
      try {
        inDoubt = store.acquire(claim, Math.max(leastLook, wait.deadline.remaining));
        leastLook = 1;
        const answer = await unlessAborted(inDoubt, wait.signal);
        if (answer.taken) {
          const lease = new Lease(claim, sentAt);
          if (lease.loss === undefined) {
            inDoubt = undefined;
            return lease;
          }
          unanswered = lease.loss;
          nextLook = 0;
        } else {
          inDoubt = undefined;
          // One more, because the store rounds down: looking a moment early would only repeat the look.
          nextLook = answer.expiresIn + 1;
          pause = FIRST_PAUSE;
        }
      } catch (error) {
        wait.signal?.throwIfAborted();
        emit({ type: 'look-failed', key: claim.key, error });
        unanswered = error;
        nextLook = pause;
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
      wait.onWait();
      if (wait.deadline.passed) {
        if (unanswered !== undefined) throw new LockUnavailableError(claim.key, unanswered);
        throw new LockTimeoutError(claim.key, `${wait.waitTime} ms`);
      }
      if (watch === undefined && unanswered === undefined) {
        const watching = store.watch(claim.key, () => bell.ring(), wait.deadline.remaining);
        try {
          watch = await unlessAborted(watching, wait.signal);
          continue;
        } catch (error) {
          // Where the signal came first, the subscription is still to come, and nobody else would end it.
          void watching.then(
            (late) => late.close(),
            () => {},
          );
          wait.signal?.throwIfAborted();
          emit({ type: 'subscriber-down', error });
          nextLook = Math.min(nextLook, DEAF_PAUSE);
        }
      }
      await bell.sleep(Math.min(nextLook, wait.deadline.remaining), wait.signal);
    }
  } finally {
    watch?.close();
    // Behind the look that it undoes, and not beside it: the store may have to send that one's script again.
    const undo = () => store.release(claim);
    if (inDoubt) void inDoubt.then(undo, undo).catch(() => {});
  }
}

/** A sleep that a ring ends, also a ring that came just before it. */
class Bell {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  reset(): void {
    this.#rung = false;
  }

  sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (this.#rung || signal?.aborted) return resolve();
      const wake = () => {
        timer.stop();
        signal?.removeEventListener('abort', wake);
        this.#wake = undefined;
        resolve();
      };
      const timer = after(ms, wake);
      signal?.addEventListener('abort', wake, { once: true });
      this.#wake = wake;
    });
  }
}
