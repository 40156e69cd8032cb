import { Deadline, OVERDUE, within } from '../../base/clock.js';
import { asError } from '../../base/errors.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isForeignValue,
  type LeaseStore,
  type Look,
  NotAsked,
} from '../store.js';

/**
 * How long a failed node is not asked. After that, one probe in the background finds out whether it is back;
 * milliseconds.
 */
const PROBE_PAUSE = 1_000;

/** One node of a quorum. It bounds the time of each command and remembers whether the last one failed. */
export class QuorumNode {
  readonly store: LeaseStore;
  readonly #onChange: (failure: Error | undefined) => void;
  /** The error of the last command, if it failed. */
  #failure: Error | undefined;
  #timeLimit = Number.POSITIVE_INFINITY;
  #probePause = new Deadline(0);
  #probing = false;
  /** The leases that the node may have: by holder, the last acquire that was sent, until a release is sent. */
  readonly #mayHave = new Map<string, object>();

  /** @param onChange called with the error when the node fails, and with `undefined` when it is back. */
  constructor(store: LeaseStore, onChange: (failure: Error | undefined) => void) {
    this.store = store;
    this.#onChange = onChange;
  }

  get answers(): boolean {
    return this.#failure === undefined && this.store.reach?.away !== true;
  }

  /** Whether an answer would have to wait for a connection that has not failed yet. */
  get isConnecting(): boolean {
    return this.store.reach?.connecting === true;
  }

  /** Whether the server is down and its leases are gone. */
  get isDead(): boolean {
    return this.store.reach?.refused === true;
  }

  /** Resolves to the answer, if it comes within the time limit. */
  async ask<T>(time: number, question: (store: LeaseStore) => Promise<T>): Promise<T> {
    try {
      const answer = await within(question(this.store), time);
      if (answer === OVERDUE) throw new Error(`it did not answer within ${Math.round(time)} ms${this.#reach}`);
      this.#settle(undefined);
      return answer;
    } catch (error) {
      this.#timeLimit = time;
      // A foreign value is an answer: the node is well.
      this.#settle(isForeignValue(error) ? undefined : asError(error));
      throw error;
    }
  }

  /**
   * Fails without asking the node: the others are enough, and waiting for this one would cost each command its time
   * limit.
   */
  async skip(key: string | undefined): Promise<never> {
    const failure = this.#failure ?? new Error(`it was not asked${this.#reach}`);
    if (this.#failure === undefined) {
      this.#settle(failure);
      // Probe at once when the client is connected again; `reach` shows when.
      this.#probePause = new Deadline(0);
    }
    // Do not probe while the client is disconnected: the commands would pile up in its queue.
    const mayAsk = this.#probePause.passed && !this.#probing && this.store.reach?.ready !== false;
    if (key !== undefined && mayAsk) {
      this.#probing = true;
      this.ask(this.#timeLimit, (store) => store.inspect(key))
        .catch(() => {})
        .finally(() => {
          this.#probing = false;
        });
    }
    throw failure;
  }

  acquire(claim: Claim, time: number, look: Look): Promise<AcquireResult> {
    const { holder } = claim;
    this.#mayHave.set(holder, look);
    return this.ask(time, async (store) => {
      const answer = await store.acquire(claim, look).catch((error: unknown) => {
        if (error instanceof NotAsked && this.#mayHave.get(holder) === look) this.#mayHave.delete(holder);
        throw error;
      });
      const latest = this.#mayHave.get(holder);
      // The lease was released meanwhile, but the acquire was sent once more after that, because the node did not know
      // the script.
      if (answer.taken && latest === undefined) store.release(claim, true).catch(() => {});
      if (!answer.taken && latest === look) this.#mayHave.delete(holder);
      return answer;
    });
  }

  extend(claims: readonly Claim[], time: number): Promise<Extension[]> {
    return this.ask(time, async (store) => {
      const answers = await store.extend(claims);
      const failure = answers.find((answer) => answer instanceof Error);
      if (failure instanceof Error && answers.every((answer) => answer instanceof Error)) throw failure;
      return answers;
    });
  }

  transfer(claim: Claim, successor: string, time: number): Promise<boolean> {
    this.#mayHave.set(successor, {});
    return this.ask(time, async (store) => {
      const moved = await store.transfer(claim, successor);
      // As in `acquire`: it was released meanwhile, and a server that lacked the script has executed the transfer after that.
      if (moved && !this.#mayHave.has(successor)) store.release({ ...claim, holder: successor }).catch(() => {});
      return moved;
    });
  }

  /** Undoes what this acquire may have taken, unless a newer one is in flight. */
  takeBack(claim: Claim, look: Look): void {
    // Quietly: the other processes look again by themselves. A wake-up would make all of them ask at the same time
    // again.
    if (this.#mayHave.get(claim.holder) === look) this.release(claim, true).catch(() => {});
  }

  mayHave(holder: string): boolean {
    return this.#mayHave.has(holder);
  }

  /** Sends the release after the command that it undoes. A failed node gets none for a lease that it cannot have. */
  async release(claim: Claim, quietly: boolean): Promise<void> {
    if (!this.#mayHave.delete(claim.holder) && this.#failure) throw this.#failure;
    await this.store.release(claim, quietly);
  }

  get #reach(): string {
    const { reach } = this.store;
    return reach ? `; ${reach.says}` : '';
  }

  #settle(failure: Error | undefined): void {
    const before = this.#failure;
    this.#failure = failure;
    if (failure) this.#probePause = new Deadline(PROBE_PAUSE);
    if ((before === undefined) !== (failure === undefined)) this.#onChange(failure);
  }
}
