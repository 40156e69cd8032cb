import type {
  AcquireResult,
  Claim,
  Extension,
  KeyState,
  LeaseStore,
  Look,
  WakeUp,
  Watch,
} from '../../src/waiting/store.js';
import { Tally, Work } from './tally.js';

/** The store, and what has been asked of it: an event for each, so that nothing has to be waited for by the clock. */
export class ObservedStore implements LeaseStore {
  readonly looks = new Tally();
  readonly answers = new Tally();
  readonly splits = new Tally();
  readonly watches = new Tally();
  /** What was heard, by whoever of this process listens. */
  readonly wakeUps: WakeUp[] = [];
  readonly heard = new Tally();
  readonly extensions: Array<{ claims: readonly Claim[]; answers: readonly Extension[] }> = [];
  readonly extended = new Tally();
  readonly extending = new Tally();
  readonly yielding = new Tally();
  readonly yielded = new Tally();
  readonly released = new Work();
  readonly hinted = new Work();
  /** Runs between the first look and the subscription. */
  beforeWatch: () => Promise<unknown> = async () => {};
  /** Runs between a look and its answer, with the look's number. */
  beforeAnswer: (look: number) => Promise<unknown> = async () => {};
  /** Runs between a yield and its answer. */
  beforeYieldAnswer: () => Promise<unknown> = async () => {};
  readonly #taken = new Set<string>();
  readonly #store: LeaseStore;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  get goesOnWithout(): boolean {
    return this.#store.goesOnWithout === true;
  }

  get newHolderPerLook(): boolean {
    return this.#store.newHolderPerLook === true;
  }

  async acquire(claim: Claim, look?: Look): Promise<AcquireResult> {
    this.looks.add();
    try {
      const number = this.looks.count;
      const answer = await this.#store.acquire(claim, look);
      if (!answer.taken && answer.split) this.splits.add();
      if (answer.taken) this.#taken.add(claim.holder);
      await this.beforeAnswer(number);
      return answer;
    } finally {
      this.answers.add();
    }
  }

  /** Whether the store has told that this holder has the key. */
  hasGivenTo(holder: string): boolean {
    return this.#taken.has(holder);
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    this.extending.add();
    const answers = await this.#store.extend(claims);
    this.extensions.push({ claims: [...claims], answers });
    claims.forEach(({ holder }, index) => {
      if (answers[index] === 'extended') this.#taken.add(holder);
    });
    this.extended.add();
    return answers;
  }

  async yield(claim: Claim): Promise<boolean> {
    this.yielding.add();
    try {
      const kept = await this.#store.yield(claim);
      await this.beforeYieldAnswer();
      return kept;
    } finally {
      this.yielded.add();
    }
  }

  release(claim: Claim, quietly?: boolean): Promise<void> {
    return this.released.run(this.#store.release(claim, quietly));
  }

  async watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    await this.beforeWatch();
    const watching = this.#store.watch(key, (wakeUp) => {
      wake(wakeUp);
      this.wakeUps.push(wakeUp);
      this.heard.add();
    });
    this.watches.add();
    return await watching;
  }

  get hint(): LeaseStore['hint'] {
    const { hint } = this.#store;
    return hint && ((claim) => this.hinted.run(hint.call(this.#store, claim)));
  }

  transfer(claim: Claim, successor: string): Promise<boolean> {
    return this.#store.transfer(claim, successor);
  }

  inspect(key: string, names?: number): Promise<KeyState> {
    return this.#store.inspect(key, names);
  }

  list(): Promise<readonly KeyState[]> {
    return this.#store.list();
  }

  onReturn(listener: () => void): () => void {
    return this.#store.onReturn(listener);
  }

  force(key: string, holder: string): Promise<boolean> {
    return this.#store.force(key, holder);
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
