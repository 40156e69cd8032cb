import { sleep, within } from '../../base/clock.js';
import type { Emit } from '../../base/events.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isInUse,
  type KeyState,
  type LeaseStore,
  type Look,
  type WakeUp,
  type Watch,
} from '../store.js';
import { Ballot, isClear, majorityOf, stateOf } from './majority.js';
import { QuorumNode } from './quorum-node.js';
import { QuorumWatch } from './quorum-watch.js';

/** Share of the lease time that one node may take to answer: if it takes more, the others decide without it. */
const NODE_SHARE = 1 / 20;
/** A healthy one in a network may take so long, however short the lease; milliseconds. */
const LEAST_NODE_TIME = 50;
/** How long the others are waited for once most nodes have answered, and differ; milliseconds. */
const LATE_TIME = 250;
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
  readonly #giveWay: number;

  /** `giveWay`: how long those who wait may take to come for a key that is passed on; milliseconds. */
  constructor(stores: readonly LeaseStore[], giveWay: number, emit: Emit) {
    this.#nodes = stores.map(
      (store, node) =>
        new QuorumNode(store, (error) =>
          emit(error ? { type: 'node-down', node, error } : { type: 'node-back', node }),
        ),
    );
    this.#giveWay = giveWay;
  }

  async acquire(claim: Claim, { enter = 0, atMost = Number.POSITIVE_INFINITY }: Look = {}): Promise<AcquireResult> {
    const time = Math.min(atMost, timeFor(claim));
    const look = { enter: enter > 0 ? PLACE_TIME : 0 };
    const ballot = this.#ask(claim.key, (node) => node.acquire(withDrift(claim), time, look));
    const { majority } = ballot;
    const taken = () => ballot.count((vote) => isAnswer(vote) && vote.taken);
    const isOut = () => taken() + ballot.left < majority;
    const isKnown = () => ballot.isMajority(isAnswer);
    const states = () => answersOf(ballot.cast).map((answer) => stateBy(claim.key, answer));
    const isDenied = () => isOut() && isKnown() && isClear(states(), ballot.left, majority);
    const isDecided = () => taken() >= majority || isDenied();
    // One that is late can only end a tie, and is not worth much time then: others wait for what we were given.
    await ballot.until(() => isDecided() || isKnown());
    if (!isDecided()) await within(ballot.until(isDecided), LATE_TIME);
    if (taken() >= majority) return { taken: true };
    ballot.each((vote, node) => {
      if (!isAnswer(vote) || vote.taken) this.#nodes[node]?.takeBack(claim, look);
    });
    return this.#denied(claim.key, ballot);
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const time = Math.min(...claims.map(timeFor));
    const ballot = this.#ask(claims[0]?.key, (node) => node.extend(claims.map(withDrift), time));
    const says = (index: number, wanted: Extension) => (vote: Extension[] | Error) =>
      isAnswer(vote) && vote[index] === wanted;
    const isExtended = (index: number) => ballot.isMajority(says(index, 'extended'));
    // Only then can somebody else have most of them: with fewer it is not lost, and gets those again.
    const isGone = (index: number) => ballot.isMajority(says(index, 'gone'));
    await ballot.until(() => claims.every((_, index) => isExtended(index) || isGone(index)));
    return claims.map((claim, index) => {
      if (isGone(index)) return 'gone';
      ballot.each((vote, node) => {
        if (says(index, 'gone')(vote)) this.#fillUp(claim, node);
      });
      if (isExtended(index)) return 'extended';
      return this.#unknown(ballot.cast.map((vote) => (vote instanceof Error ? vote : vote?.[index])));
    });
  }

  async yield(claim: Claim): Promise<boolean> {
    const ballot = this.#ask(claim.key, (node) => node.ask(timeFor(claim), (store) => store.yield(withDrift(claim))));
    if (await this.#decided(ballot)) return true;
    await this.release(claim);
    // Its own callers would ask again before a message can reach anybody.
    await sleep(this.#giveWay);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const ballot = new Ballot(
      this.#nodes.map((node) => node.release(claim, quietly).then(() => true as const, asError)),
      this.#dead,
    );
    const isDone = () => ballot.isMajority(isAnswer);
    await ballot.until(isDone);
    if (!isDone()) throw this.#unknown(ballot.cast);
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const stores = this.#nodes.map(({ store }) => store);
    return QuorumWatch.open(stores, () => this.#majority, key, wake);
  }

  async transfer(claim: Claim, successor: string): Promise<boolean> {
    const time = timeFor(claim);
    const ballot = this.#ask(claim.key, (node) => node.transfer(withDrift(claim), successor, time));
    if (await this.#decided(ballot)) return true;
    ballot.each((_, node) => {
      this.#nodes[node]?.release({ ...claim, holder: successor }, false).catch(() => {});
    });
    return false;
  }

  async inspect(key: string): Promise<KeyState> {
    const ballot = this.#ask(key, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.inspect(key)));
    await ballot.until(() => areClear([answersOf(ballot.cast)], ballot));
    return stateOf(key, this.#enough(ballot), ballot.majority);
  }

  async list(): Promise<readonly KeyState[]> {
    const ballot = this.#ask(undefined, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.list()));
    await ballot.until(() => areClear(byKey(answersOf(ballot.cast).flat()).values(), ballot));
    return [...byKey(this.#enough(ballot).flat())]
      .map(([key, states]) => stateOf(key, states, ballot.majority))
      .filter(isInUse);
  }

  async force(key: string, holder: string): Promise<boolean> {
    return await this.#decided(
      this.#ask(key, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.force(key, holder))),
    );
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

  get #dead(): number {
    return this.#nodes.filter(({ isDead }) => isDead).length;
  }

  get #majority(): number {
    return majorityOf(this.#nodes.length, this.#dead);
  }

  /** One vote of each node. A node that is dead is left out, and one that failed while the others are enough. */
  #ask<T>(key: string | undefined, question: (node: QuorumNode) => Promise<T>): Ballot<T | Error> {
    const enough = this.#nodes.filter(({ answers }) => answers).length >= this.#majority;
    const isSpared = (node: QuorumNode) => node.isDead || (enough && !node.answers);
    return new Ballot(
      this.#nodes.map((node) => (isSpared(node) ? node.spare(key) : question(node)).catch(asError)),
      this.#dead,
    );
  }

  /** @throws where so few answered that nobody knows. */
  async #decided(ballot: Ballot<boolean | Error>): Promise<boolean> {
    const isYes = () => ballot.isMajority((vote) => vote === true);
    const isNo = () => ballot.isOut((vote) => vote === false);
    await ballot.until(() => isYes() || isNo());
    if (!isYes() && !isNo()) throw this.#unknown(ballot.cast);
    return isYes();
  }

  #denied(key: string, ballot: Ballot<AcquireResult | Error>): AcquireResult {
    const states = this.#enough(ballot).map((answer) => stateBy(key, answer));
    const { holder, expiresIn, process } = stateOf(key, states, ballot.majority);
    if (holder === undefined) return { taken: false, expiresIn: LONGEST_REST, split: true };
    const named = process === undefined ? {} : { process };
    return { taken: false, expiresIn, lookIn: Math.min(expiresIn, LONGEST_REST), holder, ...named };
  }

  /**
   * A node that lost its memory, or was away, gets the lease if nobody else has it there: the next one that fails would
   * end it otherwise. Only while it is not lost: that is not taken again behind its holder's back.
   */
  #fillUp(claim: Claim, node: number): void {
    // It may have been given back before this node said so.
    if (!this.#nodes.some((each) => each.mayHave(claim.holder))) return;
    this.#nodes[node]?.acquire(withDrift(claim), timeFor(claim), { enter: 1 }).catch(() => {});
  }

  /** @throws where most of them did not answer. */
  #enough<T>({ cast, majority }: Ballot<T | Error>): T[] {
    const known = answersOf(cast);
    if (known.length < majority) throw this.#unknown(cast);
    return known;
  }

  #unknown(votes: readonly unknown[]): Error {
    const failures = votes.flatMap((vote, node) => (vote instanceof Error ? [{ node, vote }] : []));
    const why = failures.map(({ node, vote }) => `node ${node}: ${vote.message}`).join('; ');
    const answered = `${votes.length - failures.length} of ${votes.length} nodes answered, which does not decide`;
    return new Error(why ? `${answered}: ${why}` : answered, { cause: failures[0]?.vote });
  }
}

/** Whether enough nodes have answered, and the others can change nothing about who has these keys. */
function areClear(keys: Iterable<readonly KeyState[]>, { cast, left, majority }: Ballot<unknown>): boolean {
  if (answersOf(cast).length < majority) return false;
  return [...keys].every((states) => isClear(states, left, majority));
}

function timeFor({ leaseTime }: Claim): number {
  return Math.max(LEAST_NODE_TIME, leaseTime * NODE_SHARE);
}

/** A node keeps a lease for longer than its holder believes in it, which counts from before it was asked. */
function withDrift(claim: Claim): Claim {
  return { ...claim, leaseTime: claim.leaseTime + Math.ceil(claim.leaseTime * DRIFT) + LEAST_DRIFT };
}

/** What the answer to an acquire says of the key, before this acquire. */
function stateBy(key: string, answer: AcquireResult): KeyState {
  if (answer.taken) return { key, holder: undefined, expiresIn: 0, waiting: 0 };
  const { holder, process, expiresIn } = answer;
  return { key, holder: holder || undefined, expiresIn, waiting: 0, ...(process !== undefined && { process }) };
}

function byKey(states: readonly KeyState[]): Map<string, KeyState[]> {
  const keys = new Map<string, KeyState[]>();
  for (const state of states) keys.set(state.key, [...(keys.get(state.key) ?? []), state]);
  return keys;
}

function answersOf<T>(cast: readonly (T | Error | undefined)[]): T[] {
  return cast.filter((vote): vote is T => vote !== undefined && !(vote instanceof Error));
}

function isAnswer<T>(vote: T | Error): vote is T {
  return !(vote instanceof Error);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
