import { after, type Timer } from '../../base/clock.js';
import type { LeaseStore, WakeUp, Watch } from '../store.js';

/** How long to wait for the other nodes to say the same: a look before that would find half of a release. */
const TOGETHER = 20;
/** How long after a node could not be listened to it is tried again. */
const AGAIN = 1_000;

/** Listens on all nodes, and wakes when most of them say that it is worth looking; or a moment after one did. */
export class QuorumWatch implements Watch {
  readonly #majority: () => number;
  readonly #wake: (wakeUp: WakeUp) => void;
  readonly #key: string;
  readonly #watches: Watch[] = [];
  /** Of nodes that could not be listened to. */
  readonly #trying = new Set<Timer>();
  readonly #heard = new Set<LeaseStore>();
  #timer: Timer | undefined;
  #rung = false;
  #closed = false;

  private constructor(key: string, majority: () => number, wake: (wakeUp: WakeUp) => void) {
    this.#key = key;
    this.#majority = majority;
    this.#wake = wake;
  }

  /** Resolves when most nodes have confirmed; the others join when they do, also those that are back only later. */
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
      // Counted anew each time, because a node may die or come back meanwhile; the last one decides in any case.
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
    this.#timer?.stop();
    for (const timer of this.#trying) timer.stop();
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

  /** A long wait may see this node come back, and one of those that are heard now go. */
  #listenLater(node: LeaseStore): void {
    if (this.#closed) return;
    const timer = after(AGAIN, () => {
      this.#trying.delete(timer);
      // The store has told of it.
      this.#listen(node).catch(() => {});
    }).unref();
    this.#trying.add(timer);
  }

  /** A release has all of them say the same, within a moment: that is one wake-up. */
  #hear(node: LeaseStore): void {
    if (this.#closed) return;
    // What a node says twice is about two.
    if (this.#rung && this.#heard.has(node)) this.#end();
    this.#heard.add(node);
    this.#timer ??= after(TOGETHER, () => {
      if (!this.#rung) this.#ring();
      this.#end();
    });
    if (!this.#rung && this.#heard.size >= this.#majority()) this.#ring();
  }

  #ring(): void {
    this.#rung = true;
    this.#wake('look');
  }

  #end(): void {
    this.#timer?.stop();
    this.#timer = undefined;
    this.#heard.clear();
    this.#rung = false;
  }
}
