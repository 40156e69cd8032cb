import { MOST_REFUSALS, type NotedRefusal, type Refusal, sentenceOf } from './refusal.js';

/** How many ids are remembered, so that no refusal is counted twice. More than a store and this process report in a look. */
const REMEMBERED = 1_000;

/** A refused write, as it is shown. */
export interface ShownRefusal {
  readonly id: string;
  /** By the clock of this machine. */
  readonly at: number;
  readonly key: string;
  readonly token: string;
  readonly text: string;
  /** The name of the process; `null` if it is not known. */
  readonly process: string | null;
  /** Whether it is a write of this process. */
  readonly own: boolean;
}

/**
 * The writes that were refused as stale: of this process as soon as its channels tell them, of the others when they are
 * read from the store. One of this process is told by both, and counts once.
 */
export class RefusalLog {
  readonly #ids = new Set<string>();
  #kept: readonly ShownRefusal[] = [];
  #fresh: readonly ShownRefusal[] = [];

  /** The last ones, the oldest first. */
  get kept(): readonly ShownRefusal[] {
    return this.#kept;
  }

  /** One of this process. */
  heard(refusal: Refusal): void {
    if (this.#isNew(refusal)) this.#add([shownOf(refusal, 0, true)]);
  }

  /** What the store has. */
  read(refusals: readonly NotedRefusal[]): void {
    const found = refusals.filter((refusal) => this.#isNew(refusal));
    this.#add(found.map((refusal) => shownOf(refusal, refusal.ago, false)));
  }

  /** What viewers have not been told yet; `undefined`: nothing. */
  news(): object | undefined {
    if (this.#fresh.length === 0) return undefined;
    const refused = this.#fresh;
    this.#fresh = [];
    return { refused };
  }

  /** For a new viewer. The next `news` has those that are left out. */
  all(): object {
    return { all: true, refused: this.#kept.filter((one) => !this.#fresh.includes(one)) };
  }

  #isNew({ id }: Refusal): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    for (const oldest of this.#ids) {
      if (this.#ids.size <= REMEMBERED) break;
      this.#ids.delete(oldest);
    }
    return true;
  }

  #add(shown: readonly ShownRefusal[]): void {
    this.#kept = [...this.#kept, ...shown].toSorted((one, other) => one.at - other.at).slice(-MOST_REFUSALS);
    this.#fresh = [...this.#fresh, ...shown].slice(-MOST_REFUSALS);
  }
}

function shownOf(refusal: Refusal & { readonly process?: string }, ago: number, own: boolean): ShownRefusal {
  const { id, key, token, process = null } = refusal;
  return { id, at: Math.round(Date.now() - ago), key, token, text: sentenceOf(refusal), process, own };
}
