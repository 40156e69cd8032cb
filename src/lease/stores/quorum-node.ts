import { Deadline, OVERDUE, within } from '../../base/clock.js';
import { type AcquireResult, type Claim, type Extension, type LeaseStore, type Look, NotAsked } from '../store.js';

/** How long a node is spared after it has failed; then one call in the background asks whether it is back. */
const SPARED = 1_000;

/** One node of a quorum: what it is asked has a time of its own, and what comes of that is remembered. */
export class QuorumNode {
  readonly store: LeaseStore;
  readonly #onChange: (failure: Error | undefined) => void;
  /** What became of the last question, if that was nothing good. */
  #failure: Error | undefined;
  #patience = Number.POSITIVE_INFINITY;
  #spared = new Deadline(0);
  #asking = false;
  /** What it may have in a holder's name: the last acquire that was sent, until a release is. */
  readonly #mayHave = new Map<string, object>();

  /** `onChange` hears when it fails, and with `undefined` when it is back. */
  constructor(store: LeaseStore, onChange: (failure: Error | undefined) => void) {
    this.store = store;
    this.#onChange = onChange;
  }

  get answers(): boolean {
    return this.#failure === undefined && this.store.reach?.away !== true;
  }

  /** Whether there is nobody to ask: what it had for anybody it has no more. */
  get isDead(): boolean {
    return this.store.reach?.refused === true;
  }

  /** The answer, if it comes in time. */
  async ask<T>(time: number, question: (store: LeaseStore) => Promise<T>): Promise<T> {
    try {
      const answer = await within(question(this.store), time);
      if (answer === OVERDUE) throw new Error(`it did not answer within ${Math.round(time)} ms${this.#reach}`);
      this.#settle(undefined);
      return answer;
    } catch (error) {
      this.#patience = time;
      this.#settle(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }

  /** It is not asked: the others are enough, and its silence would cost each of them its time. */
  async spare(key: string | undefined): Promise<never> {
    const failure = this.#failure ?? new Error(`it was not asked${this.#reach}`);
    if (this.#failure === undefined) {
      this.#settle(failure);
      // Its client says so, and will say when it is back.
      this.#spared = new Deadline(0);
    }
    // What a client keeps back until it is connected again would pile up with it.
    const mayAsk = this.#spared.passed && !this.#asking && this.store.reach?.ready !== false;
    if (key !== undefined && mayAsk) {
      this.#asking = true;
      this.ask(this.#patience, (store) => store.inspect(key))
        .catch(() => {})
        .finally(() => {
          this.#asking = false;
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
      // It was released meanwhile, and a script that the node did not know was sent once more behind that.
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
    return this.ask(time, (store) => store.transfer(claim, successor));
  }

  /** Undoes what this look may have been given, unless something newer is under way. */
  takeBack(claim: Claim, look: Look): void {
    // Whoever lost it to the other votes tries again by itself. A message would have all of them vote at once, again.
    if (this.#mayHave.get(claim.holder) === look) this.release(claim, true).catch(() => {});
  }

  mayHave(holder: string): boolean {
    return this.#mayHave.has(holder);
  }

  /** Right behind whatever it undoes. One that fails is not sent what it cannot have. */
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
    if (failure) this.#spared = new Deadline(SPARED);
    if ((before === undefined) !== (failure === undefined)) this.#onChange(failure);
  }
}
