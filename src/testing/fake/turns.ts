import { randomUUID } from 'node:crypto';
import { offAbort, onAbort } from '../../base/abort-listeners.js';
import { after } from '../../base/clock.js';
import { ClosedError, LockLostError, LockTimeoutError } from '../../base/errors.js';
import { LazyAbort } from '../../base/lazy-abort.js';
import { GIVE_UP_AFTER } from '../give-up.js';
import { startTimer } from './timer.js';

/** How long a caller waits. */
export interface Wait {
  /** Milliseconds. `Infinity`: until it has the keys, and no timer keeps the process running. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  /** Told of each key that somebody else has. */
  onWait(key: string): void;
  /** Has, while the caller waits, what turns it away. */
  readonly waiting?: Set<() => void>;
}

/** What one caller has. */
export class FakeTurn {
  readonly keys: readonly string[];
  readonly holders: readonly string[];
  /** Aborts with the loss of the lease. */
  readonly lost = new LazyAbort();
  readonly #turns: Turns;

  constructor(turns: Turns, keys: readonly string[]) {
    this.#turns = turns;
    this.keys = keys;
    this.holders = keys.map(() => randomUUID());
  }

  /** The lease ends now, whatever its holder does. */
  lose(reason: LockLostError['reason'] = 'gone', key = this.keys[0] as string): void {
    this.lost.abort(new LockLostError(key, reason));
    this.release();
  }

  release(): void {
    for (const key of this.keys) this.#turns.pass(key, this);
  }
}

interface Waiter {
  readonly turn: FakeTurn;
  readonly take: () => void;
}

/** Who has which key in this process, and who waits for it: first come, first served. */
export class Turns {
  readonly #holders = new Map<string, FakeTurn>();
  readonly #waiters = new Map<string, Waiter[]>();
  readonly #watchers = new Set<() => void>();

  /**
   * Resolves when the caller has all of the keys, which are in the order that all take them in.
   *
   * @throws LockTimeoutError, or the signal's reason.
   */
  async take(keys: readonly string[], { waitTime, signal, onWait, waiting }: Wait): Promise<FakeTurn> {
    signal?.throwIfAborted();
    const turn = new FakeTurn(this, keys);
    const end = new LazyAbort();
    const aborted = { handleEvent: () => end.abort(signal?.reason) };
    let stop: (() => void) | undefined;
    const turnAway = () =>
      end.abort(
        new ClosedError('The client was closed, so this call no longer waits for the lock. Nothing was done.', {
          key: keys[0],
        }),
      );
    try {
      for (const key of keys) {
        if (this.#takeFree(key, turn)) continue;
        onWait(key);
        const late = () => end.abort(new LockTimeoutError(key, `${waitTime} ms`));
        if (waitTime === 0) late();
        if (stop === undefined) onAbort(signal, aborted);
        if (waitTime < Number.POSITIVE_INFINITY) stop ??= startTimer(waitTime, late);
        waiting?.add(turnAway);
        await this.#wait(key, turn, end);
      }
      return turn;
    } catch (error) {
      turn.release();
      throw error;
    } finally {
      stop?.();
      waiting?.delete(turnAway);
      offAbort(signal, aborted);
    }
  }

  holderOf(key: string): FakeTurn | undefined {
    return this.#holders.get(key);
  }

  waiting(key: string): number {
    return this.#waiters.get(key)?.length ?? 0;
  }

  /** The keys that somebody has. */
  get keys(): readonly string[] {
    return [...this.#holders.keys()];
  }

  /** Resolves when so many wait for the key, and rejects if they do not come. */
  untilWaiting(key: string, count: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = after(GIVE_UP_AFTER, () => {
        this.#watchers.delete(look);
        reject(new Error(this.#missing(key, count)));
      });
      const look = () => {
        if (this.waiting(key) < count) return;
        late.stop();
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** To the next one, if this one has it. */
  pass(key: string, from: FakeTurn): void {
    if (this.#holders.get(key) !== from) return;
    this.#holders.delete(key);
    const next = this.#waiters.get(key)?.shift();
    if (next === undefined) this.#waiters.delete(key);
    else {
      this.#holders.set(key, next.turn);
      next.take();
    }
  }

  /** Puts what it has into the name of another turn, which it loses. */
  replace(old: FakeTurn, reason: unknown): FakeTurn {
    const turn = new FakeTurn(this, old.keys);
    for (const key of old.keys) if (this.#holders.get(key) === old) this.#holders.set(key, turn);
    old.lost.abort(reason);
    return turn;
  }

  #missing(key: string, count: number): string {
    const found = `${this.waiting(key)} of ${count} callers wait for the lock ${JSON.stringify(key)} after ${GIVE_UP_AFTER} ms.`;
    if (this.#holders.has(key)) return `${found} Its holder has it: call the code that is to wait, without an await.`;
    return `${found} Nobody has it, so nobody waits: take it first by locks.hold(${JSON.stringify(key)}).`;
  }

  #takeFree(key: string, turn: FakeTurn): boolean {
    if (this.#holders.has(key)) return false;
    this.#holders.set(key, turn);
    return true;
  }

  #wait(key: string, turn: FakeTurn, end: LazyAbort): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(key) ?? [];
      this.#waiters.set(key, waiters);
      const waiter: Waiter = {
        turn,
        take: () => {
          forget();
          resolve();
        },
      };
      waiters.push(waiter);
      const forget = end.onAbort(() => {
        const at = waiters.indexOf(waiter);
        if (at !== -1) waiters.splice(at, 1);
        reject(end.reason);
      });
      for (const look of [...this.#watchers]) look();
    });
  }
}
