import { after, stop, type Timer } from '../base/clock.js';
import type { LeaseStore, WakeUp, Watch } from '../waiting/store.js';
import { Ballot, majorityOf } from './majority.js';

/** How long to wait for the wake-ups of the other nodes: an earlier look would see half of a release; milliseconds. */
const TOGETHER = 20;
/** Pause before a failed subscription is tried again; milliseconds. */
const AGAIN = 1_000;

/** Subscribes on all nodes. Wakes when a majority has sent a wake-up, or shortly after the first one. */
export class QuorumWatch implements Watch {
  readonly #majority: number;
  readonly #wake: (wakeUp: WakeUp) => void;
  readonly #key: string;
  readonly #watches: Watch[] = [];
  /** The nodes that have told of the last release. */
  readonly #heard = new Set<LeaseStore>();
  #timer: Timer | undefined;
  #closed = false;

  private constructor(key: string, majority: number, wake: (wakeUp: WakeUp) => void) {
    this.#key = key;
    this.#majority = majority;
    this.#wake = wake;
  }

  /** Resolves when a majority has confirmed. The other nodes join later. */
  static async open(nodes: readonly LeaseStore[], key: string, wake: (wakeUp: WakeUp) => void): Promise<QuorumWatch> {
    const watch = new QuorumWatch(key, majorityOf(nodes.length), wake);
    const ballot = new Ballot(nodes.map((node) => watch.#listen(node)));
    await ballot.until(() => ballot.isKnown);
    if (ballot.isKnown) return watch;
    watch.close();
    throw ballot.cast.find((vote) => vote instanceof Error);
  }

  get hears(): boolean {
    return this.#watches.filter(({ hears }) => hears !== false).length >= this.#majority;
  }

  close(): void {
    this.#closed = true;
    stop(this.#timer);
    for (const watch of this.#watches.splice(0)) watch.close();
  }

  async #listen(node: LeaseStore): Promise<true> {
    try {
      const watch = await node.watch(this.#key, () => this.#hear(node));
      if (this.#closed) watch.close();
      else this.#watches.push(watch);
      return true;
    } catch (error) {
      // During a long wait, this node may come back and another one fail. The node's store has reported the failure.
      after(AGAIN, () => {
        if (!this.#closed) this.#listen(node).catch(() => {});
      }).unref();
      throw error;
    }
  }

  /** All nodes send the wake-up of one release within a moment: they count as one. */
  #hear(node: LeaseStore): void {
    if (this.#closed) return;
    const isWoken = () => this.#heard.size >= this.#majority;
    // A second message of the same node belongs to another release.
    if (isWoken() && this.#heard.has(node)) this.#reset();
    const before = isWoken();
    this.#heard.add(node);
    if (isWoken() && !before) this.#wake('look');
    this.#timer ??= after(TOGETHER, () => {
      if (!isWoken()) this.#wake('look');
      this.#reset();
    });
  }

  #reset(): void {
    stop(this.#timer);
    this.#timer = undefined;
    this.#heard.clear();
  }
}
