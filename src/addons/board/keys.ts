import { now } from '../../base/clock.js';
import type { LockState } from '../../public.js';
import { toJson } from './headers.js';
import type { Sent } from './source.js';

/** How long one bar of a chart is; milliseconds. */
const BAR = 5_000;
/** Bars of a chart: five minutes. */
const BARS = 60;
/** How many keys are remembered that are free now and had turns in the last minutes. */
const MOST_IDLE = 1_000;
/** How many of the processes that wait are named: all names of all keys are sent to each page. */
const NAMED = 25;
/** If the end of a lease has moved by so much, the key is sent again; milliseconds. */
const NOTABLE = 400;

/** What the page is sent of a key. Of the processes that wait it has the names of the first ones. */
export interface Row extends Omit<Sent<LockState>, 'expiresIn'> {
  /** The callers of this process that wait. */
  readonly callers: number;
  /** The chart: how many turns there were in each bar, the present one last. */
  readonly bars: readonly number[];
}

interface Known {
  readonly bars: number[];
  /** How many the key had at the last look. `undefined`: when the turns since then were is not known. */
  turns: bigint | undefined;
  row?: object;
  text?: string;
  endsAt: number;
}

/** What the board knows of the keys that are in use, or were so in the last minutes. */
export class Keys {
  readonly #byKey = new Map<string, Known>();
  #bar = 0;

  /** The keys to ask about, also if they are free now. */
  get names(): readonly string[] {
    return [...this.#byKey.keys()];
  }

  /** Nobody looks, or a look has failed: when the turns until the next one were will not be known. */
  interrupt(): void {
    for (const known of this.#byKey.values()) known.turns = undefined;
  }

  /** Takes the result of a look, and returns what has changed since the look before. */
  update(states: readonly LockState[], callers: ReadonlyMap<string, number> | undefined) {
    this.#moveCharts();
    const changed: object[] = [];
    const inUse = new Set<string>();
    for (const { expiresIn, ...state } of states) {
      const { key, holder, waiters, turns } = state;
      const known = this.#byKey.get(key) ?? { bars: Array<number>(BARS).fill(0), turns: undefined, endsAt: 0 };
      if (holder !== undefined || state.waiting > 0 || state.problem !== undefined) {
        inUse.add(key);
        // Behind those that were used longer ago.
        this.#byKey.delete(key);
      }
      this.#byKey.set(key, known);
      count(known, turns);
      const row = {
        ...state,
        waiters: waiters.slice(0, NAMED),
        callers: callers?.get(key) ?? 0,
        bars: [...known.bars],
      };
      const text = toJson(row);
      const endsAt = holder === undefined ? 0 : now() + expiresIn;
      if (known.text === text && Math.abs(known.endsAt - endsAt) < NOTABLE) continue;
      Object.assign(known, { row, text, endsAt });
      changed.push(sent(row, endsAt));
    }
    const gone = this.#forget(inUse);
    return { keys: changed, gone };
  }

  /** For a page that knows nothing yet. */
  all() {
    const keys = [...this.#byKey.values()].flatMap(({ row, endsAt }) => (row === undefined ? [] : [sent(row, endsAt)]));
    return { all: true, keys, gone: [] };
  }

  #moveCharts(): void {
    const bar = Math.floor(now() / BAR);
    const by = Math.min(BARS, bar - this.#bar);
    this.#bar = bar;
    for (const { bars } of this.#byKey.values()) {
      bars.splice(0, by);
      bars.push(...Array<number>(by).fill(0));
    }
  }

  /** Forgets free keys without turns in their chart and, of too many others, those that were used longest ago. */
  #forget(inUse: ReadonlySet<string>): string[] {
    const idle = [...this.#byKey].filter(([key]) => !inUse.has(key));
    const tooMany = idle.length - MOST_IDLE;
    const gone = idle.filter(([, { bars }], at) => at < tooMany || bars.every((turns) => turns === 0));
    for (const [key] of gone) this.#byKey.delete(key);
    return gone.map(([key]) => key);
  }
}

function count(known: Known, turns: bigint): void {
  const fresh = known.turns === undefined ? 0n : turns - known.turns;
  known.turns = turns;
  // Fewer than before: the key's row was deleted as idle, and its counter began at 0 again.
  if (fresh > 0n) known.bars[BARS - 1] = (known.bars[BARS - 1] ?? 0) + Number(fresh);
}

/** With the time that the lease has left: the page has another clock. */
function sent(row: object, endsAt: number): object {
  return { ...row, expiresIn: Math.max(0, Math.round(endsAt - now())) };
}
