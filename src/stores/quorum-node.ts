import { Deadline, now, OVERDUE, within } from '../base/clock.js';
import { asError } from '../base/errors.js';
import { type AcquireResult, type Claim, isForeignValue, type LeaseStore, type Look } from '../waiting/store.js';

/** Share of the lease time that a node may take to answer; and the least time, within which a busy machine answers, in ms. */
const SHARE = 1 / 20;
const LEAST_TIME = 200;
/** Time limit of a node that has not answered yet, because it is being connected to; half a lease at most; milliseconds. */
const CONNECTION_TIME = 1_000;
/** How long a failed node is left alone before a command finds out whether it is back; milliseconds. */
const PROBE_PAUSE = 1_000;

/** One node of a quorum. It bounds the time of each command and remembers whether the last one failed. */
export class QuorumNode {
  readonly store: LeaseStore;
  readonly #onChange: (failure: Error | undefined) => void;
  /** The error of the last command, if it failed. */
  #failure: Error | undefined;
  #isNew = true;
  /** When it may have given or extended a lease last, if it has failed. */
  #gaveAt = 0;
  #probePause = new Deadline(0);
  /** The looks without an answer, by holder. A server that lacks their script executes them behind later commands. */
  readonly #looks = new Map<string, Promise<AcquireResult>>();

  /** @param onChange called with the error when the node fails, and with `undefined` when it is back. */
  constructor(store: LeaseStore, onChange: (failure: Error | undefined) => void) {
    this.store = store;
    this.#onChange = onChange;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Whether the next command is to find out whether a failed node is back. */
  get isProbeDue(): boolean {
    return this.#probePause.passed;
  }

  timeFor({ leaseTime }: Claim): number {
    const time = Math.max(LEAST_TIME, leaseTime * SHARE);
    return this.#isNew ? Math.max(time, Math.min(CONNECTION_TIME, leaseTime / 2)) : time;
  }

  /** Resolves to the answer, if it comes within the time limit. Default: that of the store. */
  async ask<T>(question: (store: LeaseStore) => Promise<T>, time = Number.POSITIVE_INFINITY): Promise<T> {
    // The commands behind this one do not probe it, too.
    if (this.#failure) this.#probePause = new Deadline(PROBE_PAUSE);
    try {
      const answer = await within(question(this.store), time);
      if (answer === OVERDUE) throw new Error(`it did not answer within ${Math.round(time)} ms`);
      this.#settle(undefined);
      return answer;
    } catch (error) {
      // A foreign value is an answer: the node is well.
      this.#settle(isForeignValue(error) ? undefined : asError(error));
      throw error;
    }
  }

  acquire(claim: Claim, look: Look & { readonly atMost: number }): Promise<AcquireResult> {
    this.#gaveAt = now();
    const answer = this.ask((store) => store.acquire(claim, look), look.atMost);
    const settled = () => void this.#looks.delete(claim.holder);
    this.#looks.set(claim.holder, answer);
    answer.then(settled, settled);
    return answer;
  }

  /**
   * Behind the look of the same holder that it undoes. Also sent to a failed node; but not once all leases have ended that
   * the node may have given.
   */
  async release(claim: Claim, quietly: boolean): Promise<true> {
    await this.#looks.get(claim.holder)?.catch(() => {});
    const mayHave = now() - this.#gaveAt <= claim.leaseTime;
    if (this.#failure && !mayHave && !this.isProbeDue) throw this.#failure;
    await this.ask((store) => store.release(claim, quietly));
    return true;
  }

  #settle(failure: Error | undefined): void {
    const isChange = (this.#failure === undefined) !== (failure === undefined);
    this.#isNew = false;
    this.#failure = failure;
    if (failure) this.#probePause = new Deadline(PROBE_PAUSE);
    if (!isChange) return;
    this.#gaveAt = now();
    this.#onChange(failure);
  }
}
