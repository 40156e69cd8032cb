import { after, stop, type Timer } from '../../base/clock.js';
import type { LeaseStore, WakeUp, Watch } from '../store.js';

/** How long to wait for the wake-ups of the other nodes: an earlier look would see half of a release; milliseconds. */
const TOGETHER = 20;
/** Pause before a failed subscription is tried again; milliseconds. */
const AGAIN = 1_000;

/** Subscribes on all nodes. Wakes when a majority has sent a wake-up, or shortly after the first one. */
export class QuorumWatch implements Watch {
  readonly #majority: () => number;
  readonly #wake: (wakeUp: WakeUp) => void;
  readonly #key: string;
  readonly #watches: Watch[] = [];
  /** Timers of nodes whose subscription failed. */
  readonly #retryTimers = new Set<Timer>();
  readonly #heard = new Set<LeaseStore>();
  #timer: Timer | undefined;
  #woken = false;
  #closed = false;

  private constructor(key: string, majority: () => number, wake: (wakeUp: WakeUp) => void) {
    this.#key = key;
    this.#majority = majority;
    this.#wake = wake;
  }

  /** Resolves when a majority has confirmed. The other nodes join later. */
  static open(
    nodes: readonly LeaseStore[],
    majority: () => number,
    key: string,
    wake: (wakeUp: WakeUp) => void,
  ): Promise<QuorumWatch> {
    const watch = new QuorumWatch(key, majority, wake);
    return new Promise((resolve, reject) => {
      let left = nodes.length;
      let failure: unknown;
      let decided = false;
      // The majority is computed each time, because a node may die or come back meanwhile. The last answer decides in
      // any case.
      const settled = () => {
        left--;
        const joined = watch.#watches.length;
        if (decided || (joined < majority() && joined + left >= majority())) return;
        decided = true;
        if (joined >= majority()) return resolve(watch);
        watch.close();
        reject(failure);
      };
      for (const node of nodes) {
        watch
          .#listen(node)
          .catch((error: unknown) => {
            failure = error;
          })
          .then(settled);
      }
    });
  }

  get hears(): boolean {
    return this.#watches.filter(({ hears }) => hears !== false).length >= this.#majority();
  }

  close(): void {
    this.#closed = true;
    stop(this.#timer);
    for (const timer of this.#retryTimers) stop(timer);
    for (const watch of this.#watches.splice(0)) watch.close();
  }

  async #listen(node: LeaseStore): Promise<void> {
    try {
      const watch = await node.watch(this.#key, () => this.#hear(node));
      if (this.#closed) watch.close();
      else this.#watches.push(watch);
    } catch (error) {
      this.#listenLater(node);
      throw error;
    }
  }

  /** During a long wait, this node may come back and another one fail. */
  #listenLater(node: LeaseStore): void {
    if (this.#closed) return;
    const timer = after(AGAIN, () => {
      this.#retryTimers.delete(timer);
      // The node's store has reported the failure.
      this.#listen(node).catch(() => {});
    }).unref();
    this.#retryTimers.add(timer);
  }

  /** All nodes send the wake-up of one release within a moment: they count as one. */
  #hear(node: LeaseStore): void {
    if (this.#closed) return;
    // A second message of the same node belongs to another release.
    if (this.#woken && this.#heard.has(node)) this.#reset();
    this.#heard.add(node);
    this.#timer ??= after(TOGETHER, () => {
      if (!this.#woken) this.#sendWakeUp();
      this.#reset();
    });
    if (!this.#woken && this.#heard.size >= this.#majority()) this.#sendWakeUp();
  }

  #sendWakeUp(): void {
    this.#woken = true;
    this.#wake('look');
  }

  #reset(): void {
    stop(this.#timer);
    this.#timer = undefined;
    this.#heard.clear();
    this.#woken = false;
  }
}
