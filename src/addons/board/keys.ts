import { now } from '../../base/clock.js';
import type { BoardKey } from './source.js';

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

/** What the page is sent of a key, beside the time that its lease has left. */
export interface Row {
  readonly key: string;
  readonly holder: string | null;
  readonly process: string | null;
  readonly waiting: number;
  /** The names of the first processes that wait, in their order. */
  readonly waiters: readonly (string | null)[];
  /** The callers of this process that wait. */
  readonly callers: number;
  readonly problem: string | null;
  readonly token: string | null;
  readonly turns: string;
  readonly admittedAt: string | null;
  readonly transaction: { readonly pid: number; readonly since: string } | null;
  /** The chart: how many turns there were in each bar, the present one last. */
  readonly bars: readonly number[];
}

interface Known {
  readonly bars: number[];
  /** How many the key had at the last look. `undefined`: when the turns since then were is not known. */
  turns: bigint | undefined;
  row?: Row;
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
  update(states: readonly BoardKey[], callers: ReadonlyMap<string, number> | undefined) {
    this.#moveCharts();
    const changed: object[] = [];
    const inUse = new Set<string>();
    for (const state of states) {
      const known = this.#byKey.get(state.key) ?? { bars: Array<number>(BARS).fill(0), turns: undefined, endsAt: 0 };
      if (state.holder != null || state.waiting > 0 || state.problem !== undefined) {
        inUse.add(state.key);
        // Behind those that were used longer ago.
        this.#byKey.delete(state.key);
      }
      this.#byKey.set(state.key, known);
      count(known, BigInt(state.turns));
      const row = rowOf(state, callers?.get(state.key) ?? 0, [...known.bars]);
      const text = JSON.stringify(row);
      const endsAt = row.holder === null ? 0 : now() + state.expiresIn;
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
function sent(row: Row, endsAt: number): object {
  return { ...row, expiresIn: Math.max(0, Math.round(endsAt - now())) };
}

function rowOf(state: BoardKey, callers: number, bars: readonly number[]): Row {
  const { transaction } = state;
  return {
    key: state.key,
    holder: state.holder ?? null,
    process: state.process ?? null,
    waiting: state.waiting,
    waiters: (state.waiters ?? []).slice(0, NAMED).map((name) => name ?? null),
    callers,
    problem: state.problem ?? null,
    token: state.token == null ? null : String(state.token),
    turns: String(state.turns),
    admittedAt: state.admittedAt?.toISOString() ?? null,
    transaction: transaction ? { pid: transaction.pid, since: transaction.since.toISOString() } : null,
    bars,
  };
}
