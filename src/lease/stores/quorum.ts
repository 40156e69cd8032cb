import { sleep, within } from '../../base/clock.js';
import { asError } from '../../base/errors.js';
import type { Emit } from '../../base/events.js';
import {
  type AcquireResult,
  type Claim,
  type Extension,
  isForeignValue,
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

/** Share of the lease time that one node may take to answer. The others decide without a slower one. */
const NODE_SHARE = 1 / 20;
/** Least time limit for a node, however short the lease: a healthy server on a busy machine answers within it; milliseconds. */
const LEAST_NODE_TIME = 200;
/**
 * Time limit for a node that is being connected to, as at the first look of a process, which may compute a lot meanwhile.
 * Half a lease time at most, because the lease counts from before; milliseconds.
 */
const CONNECTION_TIME = 1_000;
/** How long to wait for the remaining nodes if most have answered and no majority agrees; milliseconds. */
const LATE_TIME = 250;
/** Allowed clock drift, as a share of the lease time; and in milliseconds, because Redis rounds. */
const DRIFT = 1 / 100;
const LEAST_DRIFT = 2;
/** How long a node keeps a place in its queue. It only shows that somebody waits; milliseconds. */
const PLACE_TIME = 5_000;
/** The longest pause of a waiting process before it looks again and renews its place; milliseconds. */
const LONGEST_PAUSE = 2_000;

/**
 * Leases on several independent nodes: a holder with a majority of them has the key. There is no order among the
 * waiting processes, and a node that loses its memory can cause two holders. Postgres still serializes them.
 */
export class QuorumStore implements LeaseStore {
  readonly #nodes: readonly QuorumNode[];
  readonly #giveWay: number;

  /** @param giveWay how long other processes get to take a key that is yielded; milliseconds. */
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
    const time = timeFor(claim);
    const withConnection = Math.max(time, Math.min(CONNECTION_TIME, claim.leaseTime / 2));
    const timeOf = (node: QuorumNode) => Math.min(atMost, node.isConnecting ? withConnection : time);
    const look = { enter: enter > 0 ? PLACE_TIME : 0 };
    const ballot = this.#ask(claim.key, (node) => node.acquire(withDrift(claim), timeOf(node), look));
    const { majority } = ballot;
    const taken = () => ballot.count((vote) => isAnswer(vote) && vote.taken);
    const isOut = () => taken() + ballot.left < majority;
    const isKnown = () => ballot.isMajority(isAnswer);
    const states = () => answersOf(ballot.cast).map((answer) => stateBy(claim.key, answer));
    const isDenied = () => isOut() && isKnown() && isClear(states(), ballot.left, majority);
    const isDecided = () => taken() >= majority || isDenied();
    // A late node can only break a tie, so do not wait long for it: other processes are blocked by the votes of this
    // one.
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
    // Only with a majority of `gone` can another holder have a majority. With fewer, the lease stands and is given to
    // those nodes again.
    const isGone = (index: number) => ballot.isMajority(says(index, 'gone'));
    await ballot.until(() => claims.every((_, index) => isExtended(index) || isGone(index)));
    return claims.map((claim, index) => {
      if (isGone(index)) return 'gone';
      ballot.each((vote, node) => {
        if (says(index, 'gone')(vote)) this.#restore(claim, node);
      });
      if (isExtended(index)) return 'extended';
      return this.#undecidedError(ballot.cast.map((vote) => (vote instanceof Error ? vote : vote?.[index])));
    });
  }

  async yield(claim: Claim): Promise<boolean> {
    const ballot = this.#ask(claim.key, (node) => node.ask(timeFor(claim), (store) => store.yield(withDrift(claim))));
    if (await this.#decide(ballot)) return true;
    await this.release(claim);
    // Give the other processes time: the callers of this one would ask again before a message arrives.
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
    if (!isDone()) throw this.#undecidedError(ballot.cast);
  }

  watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const stores = this.#nodes.map(({ store }) => store);
    return QuorumWatch.open(stores, () => this.#majority, key, wake);
  }

  async transfer(claim: Claim, successor: string): Promise<boolean> {
    const time = timeFor(claim);
    const ballot = this.#ask(claim.key, (node) => node.transfer(withDrift(claim), successor, time));
    if (await this.#decide(ballot)) return true;
    ballot.each((_, node) => {
      this.#nodes[node]?.release({ ...claim, holder: successor }, false).catch(() => {});
    });
    return false;
  }

  async inspect(key: string, names?: number): Promise<KeyState> {
    const ballot = this.#ask(key, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.inspect(key, names)));
    await ballot.until(() => areClear([answersOf(ballot.cast)], ballot));
    return stateOf(key, this.#answersOrThrow(ballot), ballot.majority);
  }

  async list(): Promise<readonly KeyState[]> {
    const ballot = this.#ask(undefined, (node) => node.ask(Number.POSITIVE_INFINITY, (store) => store.list()));
    await ballot.until(() => areClear(byKey(answersOf(ballot.cast).flat()).values(), ballot));
    return [...byKey(this.#answersOrThrow(ballot).flat())]
      .map(([key, states]) => stateOf(key, states, ballot.majority))
      .filter(isInUse);
  }

  async force(key: string, holder: string): Promise<boolean> {
    return await this.#decide(
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

  /** Asks each node for one vote. Dead nodes are skipped, and failed ones while the others are enough. */
  #ask<T>(key: string | undefined, question: (node: QuorumNode) => Promise<T>): Ballot<T | Error> {
    const enough = this.#nodes.filter(({ answers }) => answers).length >= this.#majority;
    const isSpared = (node: QuorumNode) => node.isDead || (enough && !node.answers);
    return new Ballot(
      this.#nodes.map((node) => (isSpared(node) ? node.skip(key) : question(node)).catch(asError)),
      this.#dead,
    );
  }

  /** @throws Error if too few nodes answered. */
  async #decide(ballot: Ballot<boolean | Error>): Promise<boolean> {
    const isYes = () => ballot.isMajority((vote) => vote === true);
    const isNo = () => ballot.isOut((vote) => vote === false);
    await ballot.until(() => isYes() || isNo());
    if (!isYes() && !isNo()) throw this.#undecidedError(ballot.cast);
    return isYes();
  }

  #denied(key: string, ballot: Ballot<AcquireResult | Error>): AcquireResult {
    const states = this.#answersOrThrow(ballot).map((answer) => stateBy(key, answer));
    const { holder, expiresIn, process } = stateOf(key, states, ballot.majority);
    if (holder === undefined) return { taken: false, expiresIn: LONGEST_PAUSE, split: true };
    const named = process === undefined ? {} : { process };
    return { taken: false, expiresIn, lookIn: Math.min(expiresIn, LONGEST_PAUSE), holder, ...named };
  }

  /**
   * Gives the lease again to a node that lost its memory or was away, if the node has no other holder. Otherwise the
   * next failure of a node would end the lease. Only for a lease that stands: a lost lease is never taken again.
   */
  #restore(claim: Claim, node: number): void {
    // The lease may have been released before this node's answer.
    if (!this.#nodes.some((each) => each.mayHave(claim.holder))) return;
    this.#nodes[node]?.acquire(withDrift(claim), timeFor(claim), { enter: 1 }).catch(() => {});
  }

  /** @throws Error if a majority did not answer. */
  #answersOrThrow<T>({ cast, majority }: Ballot<T | Error>): T[] {
    const known = answersOf(cast);
    if (known.length < majority) throw this.#undecidedError(cast);
    return known;
  }

  #undecidedError(votes: readonly unknown[]): Error {
    const failures = votes.flatMap((vote, node) => (vote instanceof Error ? [{ node, vote }] : []));
    const why = failures.map(({ node, vote }) => `node ${node}: ${vote.message}`).join('; ');
    const answered = `${votes.length - failures.length} of ${votes.length} nodes answered, which does not decide`;
    // A foreign value on one node is not why the others have not answered.
    const cause = failures.find(({ vote }) => !isForeignValue(vote)) ?? failures[0];
    return new Error(why ? `${answered}: ${why}` : answered, { cause: cause?.vote });
  }
}

/** Whether a majority has answered, and the remaining nodes cannot change who holds these keys. */
function areClear(keys: Iterable<readonly KeyState[]>, { cast, left, majority }: Ballot<unknown>): boolean {
  if (answersOf(cast).length < majority) return false;
  return [...keys].every((states) => isClear(states, left, majority));
}

function timeFor({ leaseTime }: Claim): number {
  return Math.max(LEAST_NODE_TIME, leaseTime * NODE_SHARE);
}

/**
 * A node keeps the lease for longer than the holder counts on it; the holder's time begins before the command is sent.
 */
function withDrift(claim: Claim): Claim {
  return { ...claim, leaseTime: claim.leaseTime + Math.ceil(claim.leaseTime * DRIFT) + LEAST_DRIFT };
}

/** What the answer to an acquire says about the key before that acquire. */
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
