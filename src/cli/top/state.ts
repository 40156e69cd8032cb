import type { RefusedWrites, TopRow } from './sample.js';

const SORTS = ['heat', 'waiting', 'transaction', 'key'] as const;
type Sort = (typeof SORTS)[number];

/** What is shown, and what the person at the keyboard is about to do. */
export interface TopState {
  readonly sort: Sort;
  /** Part of the key. */
  readonly filter: string;
  readonly mode: 'list' | 'filter' | 'confirm';
  /** By its name: rows change places under the cursor. */
  readonly selected: string | undefined;
  /** The row as it was when `x` was pressed: the answer is about this holder. `undefined` but in the mode `confirm`. */
  readonly asked: TopRow | undefined;
  /** What happened last. */
  readonly message: string;
}

/** What has to be done besides. */
export type Action = { readonly type: 'quit' } | ({ readonly type: 'release' } & Release);

/** A key that is to be taken, and the id of the holder that it is to be taken from. */
export interface Release {
  readonly key: string;
  readonly holderId: string | undefined;
}

/** A key of the keyboard, as `node:readline` tells of it. */
export interface KeyPress {
  readonly name?: string | undefined;
  readonly sequence?: string | undefined;
  readonly ctrl?: boolean | undefined;
}

export const START: TopState = {
  sort: 'heat',
  filter: '',
  mode: 'list',
  selected: undefined,
  asked: undefined,
  message: '',
};

/** The rows that are shown, in their order. */
export function shown(rows: readonly TopRow[], { sort, filter }: TopState): readonly TopRow[] {
  return rows.filter(({ key }) => key.includes(filter)).toSorted(ORDERS[sort]);
}

/** The refused writes that are shown. Their number is that of all keys, as the other numbers of the first line are. */
export function shownRefused(refused: RefusedWrites | undefined, { filter }: TopState): RefusedWrites | undefined {
  return refused && { ...refused, last: refused.last.filter(({ key }) => key.includes(filter)) };
}

const byKey = (one: TopRow, other: TopRow) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0);
const ORDERS: Readonly<Record<Sort, (one: TopRow, other: TopRow) => number>> = {
  heat: (one, other) => (other.heat ?? 0) - (one.heat ?? 0) || other.waiting - one.waiting || byKey(one, other),
  waiting: (one, other) => other.waiting - one.waiting || byKey(one, other),
  transaction: (one, other) => (other.transaction?.age ?? -1) - (one.transaction?.age ?? -1) || byKey(one, other),
  key: byKey,
};

/** What a key of the keyboard changes. */
export function pressed(
  state: TopState,
  rows: readonly TopRow[],
  press: KeyPress,
): { readonly state: TopState; readonly action?: Action } {
  if (press.ctrl && (press.name === 'c' || press.name === 'd')) return { state, action: { type: 'quit' } };
  if (state.mode === 'filter') return { state: typed(state, press) };
  if (state.mode === 'confirm') return answered(state, press);
  const list = shown(rows, state);
  switch (press.name ?? press.sequence) {
    case 'q':
      return { state, action: { type: 'quit' } };
    case 'down':
    case 'j':
      return { state: moved(state, list, 1) };
    case 'up':
    case 'k':
      return { state: moved(state, list, -1) };
    case 's':
      return { state: { ...state, sort: SORTS[(SORTS.indexOf(state.sort) + 1) % SORTS.length] as Sort } };
    case '/':
      return { state: { ...state, mode: 'filter', message: '' } };
    case 'escape':
      return { state: { ...state, filter: '', selected: undefined, message: '' } };
    case 'x': {
      const asked = list.find(({ key }) => key === state.selected);
      if (asked === undefined) return { state: { ...state, message: 'Select a key first, with the arrows.' } };
      return { state: { ...state, mode: 'confirm', asked, message: '' } };
    }
    default:
      return { state };
  }
}

function moved(state: TopState, list: readonly TopRow[], by: number): TopState {
  const at = list.findIndex(({ key }) => key === state.selected);
  const to = at === -1 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1);
  return { ...state, selected: list[to]?.key, message: '' };
}

function typed(state: TopState, { name, sequence = '', ctrl }: KeyPress): TopState {
  if (name === 'return' || name === 'enter') return { ...state, mode: 'list' };
  if (name === 'escape') return { ...state, mode: 'list', filter: '' };
  if (name === 'backspace') return { ...state, filter: [...state.filter].slice(0, -1).join('') };
  // What is no text, such as an arrow, has more than one character or a control character.
  const isText = !ctrl && [...sequence].length === 1 && !/\p{C}/u.test(sequence);
  return isText ? { ...state, filter: state.filter + sequence } : state;
}

/** Anything but `y` is a no. */
function answered(state: TopState, { sequence }: KeyPress): { readonly state: TopState; readonly action?: Action } {
  const { asked } = state;
  const list: TopState = { ...state, mode: 'list', asked: undefined };
  if (asked === undefined || (sequence !== 'y' && sequence !== 'Y')) {
    return { state: { ...list, message: 'Nothing was changed.' } };
  }
  const { key, holderId } = asked;
  return { state: { ...list, message: '' }, action: { type: 'release', key, holderId } };
}
