import { randomInt } from 'node:crypto';
import { after, sleep, stop, type Timer } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import { permitName, permitOf } from '../base/permits.js';
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
} from '../waiting/store.js';
import { Ballot, majorityOf, stateOf } from './majority.js';
import { QuorumNode } from './quorum-node.js';

/** Allowed clock drift, as a share of the lease time; and in milliseconds, because Redis rounds. */
const DRIFT = 1 / 100;
const LEAST_DRIFT = 2;
/** How long a node keeps a place in its queue. It only shows that somebody waits; milliseconds. */
const PLACE_TIME = 5_000;
/** The longest pause of a waiting process before it looks again and renews its place; milliseconds. */
const LONGEST_PAUSE = 2_000;
/** How long to wait for the wake-ups of the other nodes: an earlier look would see half of a release; milliseconds. */
const TOGETHER = 20;

/**
 * Leases on several independent nodes, as Redlock: all are asked at once, and a holder that a majority has named before
 * the lease ends has the key. There is no order among the waiting processes, and nodes that lose their memory can cause
 * two holders. Postgres still serializes them.
 */
export class QuorumStore implements LeaseStore {
  readonly newHolderPerLook = true;
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

  async acquire(claim: Claim, look: Look = {}): Promise<AcquireResult> {
    const permit = permitOf(claim.key);
    if (permit === undefined || permit.permit !== undefined) return await this.#acquire(claim, look);
    // Each node would give the first that is free there. So all are asked for the same one, one after the other.
    const begin = randomInt(permit.most);
    let answer: AcquireResult | undefined;
    for (let at = 0; at < permit.most; at++) {
      const key = permitName(permit.key, (begin + at) % permit.most);
      const next = await this.#acquire({ ...claim, key }, look);
      if (next.taken) return { ...next, key };
      if (answer === undefined || (!answer.taken && next.expiresIn < answer.expiresIn)) answer = next;
    }
    return answer as AcquireResult;
  }

  async #acquire(claim: Claim, { enter = 0, atMost = Number.POSITIVE_INFINITY }: Look = {}): Promise<AcquireResult> {
    const ballot = this.#ask((node) => {
      const look = { enter: enter > 0 ? PLACE_TIME : 0, atMost: Math.min(atMost, node.timeFor(claim)) };
      return node.acquire(withDrift(claim), look);
    }, true);
    const states = () => ballot.answers.map((answer) => stateBy(claim, answer));
    await ballot.until(() => ballot.isClear(states()));
    const { holder, expiresIn, process } = stateOf(claim.key, states(), ballot.majority);
    if (holder === claim.holder) return { taken: true };
    ballot.cast.forEach((vote, node) => {
      const isRefused = vote !== undefined && !(vote instanceof Error) && !vote.taken;
      // Quietly: the other processes look again by themselves, and a wake-up would make all of them ask at the same time again.
      if (!isRefused) this.#nodes[node]?.release(claim, true).catch(() => {});
    });
    if (!ballot.isKnown) throw ballot.undecided();
    if (holder === undefined) return { taken: false, expiresIn: LONGEST_PAUSE, split: true };
    const named = process === undefined ? {} : { process };
    return { taken: false, expiresIn, lookIn: Math.min(expiresIn, LONGEST_PAUSE), holder, ...named };
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    const ballot = this.#ask((node) => {
      const time = Math.min(...claims.map((claim) => node.timeFor(claim)));
      return node.ask((store) => extendOn(store, claims.map(withDrift)), time);
    });
    // With fewer `gone` than a majority nobody else can have the key, and the lease stands until its time is over.
    const answerFor = (index: number) =>
      (['extended', 'gone'] as const).find((wanted) => ballot.isMajority((answer) => answer[index] === wanted));
    await ballot.until(() => claims.every((_, index) => answerFor(index)));
    return claims.map((_, index) => answerFor(index) ?? ballot.undecided((answer) => answer[index]));
  }

  async yield(claim: Claim): Promise<boolean> {
    const ballot = this.#ask((node) => node.ask((store) => store.yield(withDrift(claim)), node.timeFor(claim)));
    if (await decide(ballot)) return true;
    await this.release(claim);
    // Give the other processes time: the callers of this one would ask again before a message arrives.
    await sleep(this.#giveWay);
    return false;
  }

  async release(claim: Claim, quietly = false): Promise<void> {
    const ballot = new Ballot(this.#nodes.map((node) => node.release(claim, quietly)));
    await ballot.until(() => ballot.isKnown);
    if (!ballot.isKnown) throw ballot.undecided();
  }

  /** Resolves when a majority has confirmed. The other nodes join later. */
  async watch(key: string, wake: (wakeUp: WakeUp) => void): Promise<Watch> {
    const count = this.#nodes.length;
    const watches: Watch[] = [];
    let isClosed = false;
    let told = 0;
    let timer: Timer | undefined;
    const hear = () => {
      if (isClosed) return;
      if (++told === majorityOf(count)) wake('look');
      // All nodes send the wake-up of one release within a moment: they count as one. Any more are of another release.
      timer ??= after(TOGETHER, () => {
        if (told < majorityOf(count) || told > count) wake('look');
        told = 0;
        timer = undefined;
      });
    };
    const listen = async ({ store }: QuorumNode): Promise<true> => {
      const watch = await store.watch(key, hear);
      if (isClosed) watch.close();
      else watches.push(watch);
      return true;
    };
    const close = () => {
      isClosed = true;
      stop(timer);
      for (const watch of watches.splice(0)) watch.close();
    };
    const ballot = new Ballot(this.#nodes.map(listen));
    await ballot.until(() => ballot.isKnown);
    if (ballot.isKnown) {
      const isHeard = ({ hears }: Watch) => hears !== false;
      return {
        close,
        get hears() {
          return watches.filter(isHeard).length >= ballot.majority;
        },
      };
    }
    close();
    throw ballot.cast.find((vote) => vote instanceof Error);
  }

  async transfer(claim: Claim, successor: string): Promise<boolean> {
    const moved = (store: LeaseStore) => store.transfer(withDrift(claim), successor);
    const ballot = this.#ask((node) => node.ask(moved, node.timeFor(claim)), true);
    if (await decide(ballot)) return true;
    this.release({ ...claim, holder: successor }).catch(() => {});
    return false;
  }

  async inspect(key: string, names?: number): Promise<KeyState> {
    const ballot = this.#ask((node) => node.ask((store) => store.inspect(key, names)));
    await ballot.until(() => ballot.isClear(ballot.answers));
    if (!ballot.isKnown) throw ballot.undecided();
    return stateOf(key, ballot.answers, ballot.majority);
  }

  async list(): Promise<readonly KeyState[]> {
    const ballot = this.#ask((node) => node.ask((store) => store.list()));
    const states = () => byKey(ballot.answers.flat());
    await ballot.until(() => ballot.isKnown && [...states().values()].every((each) => ballot.isClear(each)));
    if (!ballot.isKnown) throw ballot.undecided();
    return [...states()].map(([key, each]) => stateOf(key, each, ballot.majority)).filter(isInUse);
  }

  force(key: string, holder: string): Promise<boolean> {
    return decide(this.#ask((node) => node.ask((store) => store.force(key, holder))));
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

  /**
   * Asks each node for one vote. A failed one is left out as long as the others are enough, or probed now and then; but
   * not by what gives a lease, which a silent node would execute when it is back.
   */
  #ask<T extends object | boolean>(question: (node: QuorumNode) => Promise<T>, givesLease = false): Ballot<T> {
    const isEnough =
      this.#nodes.filter(({ failure }) => failure === undefined).length >= majorityOf(this.#nodes.length);
    const vote = async (node: QuorumNode) => {
      if (node.failure && isEnough && (givesLease || !node.isProbeDue)) throw node.failure;
      return await question(node);
    };
    return new Ballot(this.#nodes.map(vote));
  }
}

/** @throws Error if too few nodes answered. */
async function decide(ballot: Ballot<boolean>): Promise<boolean> {
  const isYes = () => ballot.isMajority((answer) => answer);
  const isNo = () => ballot.answers.filter((answer) => !answer).length > ballot.cast.length - ballot.majority;
  await ballot.until(() => isYes() || isNo());
  if (!isYes() && !isNo()) throw ballot.undecided();
  return isYes();
}

/** @throws Error if it has none of the answers, so that the node counts as failed. */
async function extendOn(store: LeaseStore, claims: readonly Claim[]): Promise<Extension[]> {
  const answers = await store.extend(claims);
  const [failure] = answers;
  if (failure instanceof Error && answers.every((answer) => answer instanceof Error)) throw failure;
  return answers;
}

/**
 * A node keeps the lease for longer than the holder counts on it; the holder's time begins before the command is sent.
 */
function withDrift(claim: Claim): Claim {
  return { ...claim, leaseTime: claim.leaseTime + Math.ceil(claim.leaseTime * DRIFT) + LEAST_DRIFT };
}

/** Who has the key on a node, by its answer to an acquire. */
function stateBy({ key, holder, leaseTime }: Claim, answer: AcquireResult): KeyState {
  if (answer.taken) return { key, holder, expiresIn: leaseTime, waiting: 0 };
  const { process, expiresIn } = answer;
  return { key, holder: answer.holder || undefined, expiresIn, waiting: 0, ...(process !== undefined && { process }) };
}

function byKey(states: readonly KeyState[]): Map<string, KeyState[]> {
  const keys = new Map<string, KeyState[]>();
  for (const state of states) keys.set(state.key, [...(keys.get(state.key) ?? []), state]);
  return keys;
}
