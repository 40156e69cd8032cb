import { sleep } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import { reached, stateOf } from './majority.js';
import { QuorumNode } from './quorum-node.js';
import { QuorumWatch } from './quorum-watch.js';
import type { Answer, Claim, Extension, KeyState, LeaseStore, Look, WakeUp, Watch } from './store.js';

/** Share of the lease time that one node may take to answer: if it takes more, the others decide without it. */
const NODE_SHARE = 1 / 20;
/** A healthy one in a network may take so long, however short the lease; milliseconds. */
const LEAST_NODE_TIME = 25;
/** How far clocks may run apart, as a share of the lease time; and in milliseconds, for Redis rounds. */
const DRIFT = 1 / 100;
const LEAST_DRIFT = 2;
/** How long a place is kept on a node, which tells that somebody waits and nothing else; milliseconds. */
const PLACE_TIME = 5_000;
/** How often one who waits comes to keep its place, at the least; milliseconds. */
const LONGEST_REST = 2_000;

/**
 * Leases on several nodes that know nothing of each other: who has most of them has the key. There is no order among
 * those who wait, and a node that forgets can make two holders out of one: this is for getting on while nodes fail, and
 * Postgres decides.
 */
export class QuorumStore implements LeaseStore {
  readonly #nodes: readonly QuorumNode[];
  readonly #majority: number;
  readonly #giveWay: number;

  /** `giveWay`: how long those who wait may take to come for a key that is passed on; milliseconds. */
  constructor(stores: readonly LeaseStore[], giveWay: number, emit: Emit) {
    this.#nodes = stores.map(
      (store, node) =>
        new QuorumNode(store, (error) =>
          emit(error ? { type: 'node-down', node, error } : { type: 'node-back', node }),
        ),
    );
    this.#majority = Math.floor(stores.length / 2) + 1;
    this.#giveWay = giveWay;
  }

  async acquire(claim: Claim, { enter = 0, atMost = Number.POSITIVE_INFINITY }: Look = {}): Promise<Answer> {
    const time = Math.min(atMost, timeFor(claim));
    const look = { enter: enter > 0 ? PLACE_TIME : 0 };
    const votes = this.#ask(claim.key, (node) => node.acquire(withDrift(claim), time, look));
    if (await reached(votes, this.#majority, (vote) => isAnswer(vote) && vote.taken)) return { taken: true };
    const answers = await Promise.all(votes);
    answers.forEach((answer, index) => {
      // Whoever lost it to these votes tries again by itself. A message would have all of them vote at once, again.
      if (!isAnswer(answer) || answer.taken) this.#nodes[index]?.release(claim, true).catch(() => {});
    });
    return this.#denied(claim.key, answers);
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const time = Math.min(...claims.map(timeFor));
    const answers = await this.#all(claims[0]?.key, (node) => node.extend(claims.map(withDrift), time));
    return claims.map((claim, index) => {
      const votes = answers.map((answer) => (isAnswer(answer) ? (answer[index] ?? new Error('no answer')) : answer));
      const extended = votes.filter((vote) => vote === 'extended').length;
      if (extended >= this.#majority) {
        this.#fillUp(claim, votes);
        return 'extended';
      }
      return this.#isOut(votes.filter((vote) => vote === 'gone').length) ? 'gone' : this.#unknown(votes);
    });
  }

  async yield(claim: Claim): Promise<boolean> {
    const answers = await this.#all(claim.key, (node) =>
      node.ask(timeFor(claim), (store) => store.yield(withDrift(claim))),
    );
    if (this.#decided(answers)) return true;
    await this.release(claim);
    // Its own callers would ask again before a message can reach anybody.
    await sleep(this.#giveWay);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const votes = this.#nodes.map((node) => node.release(claim, quietly).then(() => true as const, asError));
    if (!(await reached(votes, this.#majority, isAnswer))) throw this.#unknown(await Promise.all(votes));
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const stores = this.#nodes.map(({ store }) => store);
    return QuorumWatch.open(stores, this.#majority, key, wake);
  }

  async transfer(claim: Claim, successor: string): Promise<boolean> {
    const time = timeFor(claim);
    const answers = await this.#all(claim.key, (node) => node.transfer(withDrift(claim), successor, time));
    if (this.#decided(answers)) return true;
    for (const node of this.#nodes) node.release({ ...claim, holder: successor }, false).catch(() => {});
    return false;
  }

  async inspect(key: string): Promise<KeyState> {
    const states = await this.#all(key, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.inspect(key)));
    return stateOf(key, this.#enough(states), this.#majority);
  }

  async list(): Promise<readonly KeyState[]> {
    const lists = await this.#all(undefined, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.list()));
    const byKey = new Map<string, KeyState[]>();
    for (const state of this.#enough(lists).flat()) byKey.set(state.key, [...(byKey.get(state.key) ?? []), state]);
    return [...byKey]
      .map(([key, states]) => stateOf(key, states, this.#majority))
      .filter(({ holder, waiting }) => holder !== undefined || waiting > 0);
  }

  async force(key: string, holder: string): Promise<boolean> {
    const answers = await this.#all(key, (node) =>
      node.ask(Number.POSITIVE_INFINITY, (store) => store.force(key, holder)),
    );
    return this.#decided(answers);
  }

  onReturn(listener: () => void): () => void {
    const ends = this.#nodes.map(({ store }) => store.onReturn(listener));
    return () => {
      for (const end of ends) end();
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ store }) => store.close()));
  }

  /** One vote of each node. A node that failed is left out while the others are enough. */
  #ask<T>(key: string | undefined, question: (node: QuorumNode) => Promise<T>): Promise<T | Error>[] {
    const enough = this.#nodes.filter(({ answers }) => answers).length >= this.#majority;
    return this.#nodes.map((node) => (enough && !node.answers ? node.spare(key) : question(node)).catch(asError));
  }

  #all<T>(key: string | undefined, question: (node: QuorumNode) => Promise<T>): Promise<(T | Error)[]> {
    return Promise.all(this.#ask(key, question));
  }

  /** Nobody can have most of the nodes any more, once so many have said no. */
  #isOut(nos: number): boolean {
    return this.#nodes.length - nos < this.#majority;
  }

  /** @throws where so few answered that nobody knows. */
  #decided(answers: readonly (boolean | Error)[]): boolean {
    if (answers.filter((answer) => answer === true).length >= this.#majority) return true;
    if (this.#isOut(answers.filter((answer) => answer === false).length)) return false;
    throw this.#unknown(answers);
  }

  #denied(key: string, answers: readonly (Answer | Error)[]): Answer {
    const known = this.#enough(answers).map((answer) =>
      answer.taken ? { holder: '', expiresIn: 0 } : { holder: answer.holder ?? '', expiresIn: answer.expiresIn },
    );
    const states = known.map((state) => ({ ...state, holder: state.holder || undefined, key, waiting: 0 }));
    const { holder, expiresIn } = stateOf(key, states, this.#majority);
    if (holder === undefined) return { taken: false, expiresIn: LONGEST_REST, split: true };
    return { taken: false, expiresIn: Math.min(expiresIn, LONGEST_REST), holder };
  }

  /**
   * A node that lost its memory, or was away, gets the lease if nobody else has it there: the next one that fails would
   * end it otherwise. Only for one who has most of them: what is lost is not taken again behind its holder's back.
   */
  #fillUp(claim: Claim, votes: readonly Extension[]): void {
    // Given back meanwhile: there, too, it would be had by nobody.
    if (!this.#nodes.some((node) => node.mayHave(claim.holder))) return;
    votes.forEach((vote, index) => {
      if (vote !== 'gone') return;
      this.#nodes[index]?.acquire(withDrift(claim), timeFor(claim), { enter: 1 }).catch(() => {});
    });
  }

  /** @throws where most of them did not answer. */
  #enough<T>(answers: readonly (T | Error)[]): T[] {
    const known = answers.filter(isAnswer);
    if (known.length < this.#majority) throw this.#unknown(answers);
    return known;
  }

  #unknown(votes: readonly unknown[]): Error {
    const failures = votes.filter((vote) => vote instanceof Error);
    const why = failures.map(({ message }) => message).join('; ');
    const answered = votes.length - failures.length;
    return new Error(`${answered} of ${votes.length} nodes answered, which does not decide: ${why}`, {
      cause: failures[0],
    });
  }
}

function timeFor({ leaseTime }: Claim): number {
  return Math.max(LEAST_NODE_TIME, leaseTime * NODE_SHARE);
}

/** A node keeps a lease for longer than its holder believes in it, which counts from before it was asked. */
function withDrift(claim: Claim): Claim {
  return { ...claim, leaseTime: claim.leaseTime + Math.ceil(claim.leaseTime * DRIFT) + LEAST_DRIFT };
}

function isAnswer<T>(vote: T | Error): vote is T {
  return !(vote instanceof Error);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
