import type { Histories, KeyHistory } from './history.js';
import type { BoardKey } from './source.js';

/** What the page is sent of a key. */
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
  /** The last bar of the chart. */
  readonly bar: readonly [turns: number, waiting: number];
}

/** `expiresIn` falls with time, so it is no part of what is compared. It is sent with each change. */
type SentRow = Row & { readonly expiresIn: number };

interface Moment {
  readonly bar: number;
  readonly continuous: boolean;
  readonly callers: ReadonlyMap<string, number> | undefined;
  readonly histories: Histories;
}

/** How many of the processes that wait are named: all names of all keys are sent to each page. */
const NAMED = 25;
/** If the end of a lease has moved by so much, the row is sent again; milliseconds. */
const NOTABLE = 400;

/** The rows that viewers know. */
export class Rows {
  readonly #byKey = new Map<string, { readonly text: string; readonly row: Row; readonly endsAt: number }>();

  /** Takes the result of a look, and returns the rows that have changed since the look before. */
  update(keys: readonly BoardKey[], { bar, continuous, callers, histories }: Moment) {
    const at = Date.now();
    const changed: SentRow[] = [];
    const inUse = new Set<string>();
    for (const state of keys) {
      const isUsed = state.holder != null || state.waiting > 0 || state.problem !== undefined;
      const known = histories.of(state.key);
      const history = isUsed || known === undefined ? histories.use(state.key, bar) : known;
      if (isUsed) inUse.add(state.key);
      history.note(bar, BigInt(state.turns), state.waiting, continuous);
      const row = rowOf(state, callers?.get(state.key) ?? 0, history);
      const text = JSON.stringify(row);
      const endsAt = row.holder === null ? 0 : at + state.expiresIn;
      const before = this.#byKey.get(state.key);
      if (before?.text === text && Math.abs(before.endsAt - endsAt) < NOTABLE) continue;
      this.#byKey.set(state.key, { text, row, endsAt });
      changed.push({ ...row, expiresIn: Math.round(state.expiresIn) });
    }
    histories.forget(inUse, bar);
    const gone = [...this.#byKey.keys()].filter((key) => histories.of(key) === undefined);
    for (const key of gone) this.#byKey.delete(key);
    return { keys: changed, gone };
  }

  /** All rows, with all bars of their charts. */
  all(histories: Histories) {
    const at = Date.now();
    const keys = [...this.#byKey.values()].map(({ row, endsAt }) => {
      const history = histories.of(row.key);
      return { ...row, expiresIn: Math.max(0, endsAt - at), turnBars: history?.turns, waitingBars: history?.waiting };
    });
    return { all: true, keys, gone: [] };
  }
}

function rowOf(state: BoardKey, callers: number, { turns, waiting }: KeyHistory): Row {
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
    bar: [turns.at(-1) ?? 0, waiting.at(-1) ?? 0],
  };
}
