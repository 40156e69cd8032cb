import { randomUUID } from 'node:crypto';
import { after, stop } from '../../../base/clock.js';
import { ClosedError, LockLostError, LockTimeoutError } from '../../../base/errors.js';
import { LazyAbort } from '../../../base/lazy-abort.js';
import { GIVE_UP_AFTER } from '../give-up.js';
import { startTimer } from './timer.js';

/** How long a caller waits. */
export interface Wait {
  /** Milliseconds. `Infinity`: until it has the keys, and no timer keeps the process running. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  /** Told of each key that somebody else has. */
  readonly onWait?: (key: string) => void;
  /** Why it waits, for the message of a timeout. */
  readonly because?: string;
  /** Whether it comes before those that wait already. */
  readonly first?: boolean;
  /** Whether it is another process, which this client does not close. */
  readonly elsewhere?: boolean;
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
    this.#turns.pass(this);
  }

  /** Its holder has ended. */
  release(): void {
    this.#turns.pass(this);
    this.#turns.end(this);
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
  /** Those of this client that have not ended. */
  readonly #own = new Set<FakeTurn>();
  /** Each turns a caller of this client away that waits. */
  readonly #turnAway = new Set<() => void>();
  #whenEmpty: Array<() => void> = [];
  /** How many have closed this and not opened it again. */
  #closed = 0;

  /**
   * Resolves when the caller has all of the keys, which are in the order that all take them in.
   *
   * @throws LockTimeoutError, ClosedError, LockLostError if it has lost one of them meanwhile, or the signal's reason.
   */
  async take(keys: readonly string[], wait: Wait): Promise<FakeTurn> {
    wait.signal?.throwIfAborted();
    const turn = new FakeTurn(this, keys);
    if (!wait.elsewhere) this.#own.add(turn);
    const end = new LazyAbort();
    const stop: Array<() => void> = [];
    let missing = '';
    const named = () => missing;
    try {
      for (const key of keys) {
        if (!wait.elsewhere) this.throwIfClosing(key);
        if (this.#takeFree(key, turn)) continue;
        wait.onWait?.(key);
        missing = key;
        if (stop.length === 0) {
          stop.push(turn.lost.onAbort(() => end.abort(turn.lost.reason)));
          stop.push(end.follow(wait.signal), limit(wait, end, named));
        }
        await this.#wait(key, turn, end, wait);
      }
      return turn;
    } catch (error) {
      turn.release();
      throw error;
    } finally {
      for (const each of stop) each();
    }
  }

  /**
   * A turn that takes over what those holders have. They lose it.
   *
   * @throws LockLostError if they do not have it any more.
   */
  takeOver(keys: readonly string[], holders: readonly string[]): FakeTurn {
    const old = keys.map((key, at) => {
      const turn = this.#holders.get(key);
      if (turn?.holders[turn.keys.indexOf(key)] !== holders[at]) throw new LockLostError(key, 'gone');
      return turn;
    });
    const turn = new FakeTurn(this, keys);
    this.#own.add(turn);
    for (const key of keys) this.#holders.set(key, turn);
    for (const each of old) each?.lose();
    return turn;
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
        stop(late);
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** Turns away who waits, and refuses who comes. Resolves when all turns of this client have ended. */
  async close(): Promise<void> {
    const open = this.shut();
    try {
      for (const turnAway of [...this.#turnAway]) turnAway();
      if (this.#own.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
    } finally {
      open();
    }
  }

  /** Refuses callers of this client until the returned function is called. */
  shut(): () => void {
    this.#closed++;
    return () => void this.#closed--;
  }

  /** @throws ClosedError */
  throwIfClosing(key: string): void {
    if (this.#closed > 0) throw closed(key);
  }

  /** Gives the keys that this turn has to those that are next. */
  pass(from: FakeTurn): void {
    for (const key of from.keys) {
      if (this.#holders.get(key) !== from) continue;
      this.#holders.delete(key);
      const next = this.#waiters.get(key)?.shift();
      if (next === undefined) this.#waiters.delete(key);
      else {
        this.#holders.set(key, next.turn);
        next.take();
      }
    }
  }

  /** A turn of this client has ended: `close` waits for that. */
  end(turn: FakeTurn): void {
    this.#own.delete(turn);
    if (this.#own.size > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
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

  #wait(key: string, turn: FakeTurn, end: LazyAbort, { first, elsewhere }: Wait): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(key) ?? [];
      this.#waiters.set(key, waiters);
      const waiter: Waiter = {
        turn,
        take: () => {
          forget();
          this.#turnAway.delete(turnAway);
          resolve();
        },
      };
      const turnAway = () => end.abort(closed(key));
      if (!elsewhere) this.#turnAway.add(turnAway);
      if (first) waiters.unshift(waiter);
      else waiters.push(waiter);
      const forget = end.onAbort(() => {
        const at = waiters.indexOf(waiter);
        if (at !== -1) waiters.splice(at, 1);
        this.#turnAway.delete(turnAway);
        reject(end.reason);
      });
      for (const look of [...this.#watchers]) look();
    });
  }
}

/** Ends a wait when its time is over. Returns what stops that. */
function limit({ waitTime, because }: Wait, end: LazyAbort, missing: () => string): () => void {
  const late = () => end.abort(new LockTimeoutError(missing(), `${waitTime} ms${because ? `, ${because}` : ''}`));
  if (waitTime === 0) late();
  return end.aborted || waitTime === Number.POSITIVE_INFINITY ? () => {} : startTimer(waitTime, late);
}

function closed(key: string): ClosedError {
  return new ClosedError('The client was closed, so this call no longer waits for the lock. Nothing was done.', {
    key,
  });
}
