// The table of keys. The first ones are in the document, however many there are.

import { bars } from './chart.js';
import type { Key, State } from './state.js';
import { byId, counted, duration, element, number, redraw, shown, shownText } from './text.js';

const SHOWN = 100;
/** How long an order stands at least, so that rows do not jump; milliseconds. */
const ORDER_STANDS = 2_000;

const ORDERS: Readonly<Record<string, (one: Key, other: Key) => number>> = {
  busy: (one, other) => other.total - one.total || other.waiting - one.waiting,
  waiting: (one, other) => other.waiting - one.waiting || other.total - one.total,
  ending: (one, other) => endOf(one) - endOf(other),
  name: () => 0,
};

function endOf({ holder, endsAt }: Key): number {
  return holder === undefined ? Number.MAX_VALUE : endsAt;
}

export class KeyTable {
  readonly #state: State;
  readonly #onOpen: (key: string) => void;
  readonly #slots: ReturnType<typeof newRow>[] = [];
  #places: ReadonlyMap<string, number> = new Map();
  #sortedAt = 0;
  #sortedFor = '';

  constructor(state: State, onOpen: (key: string) => void) {
    this.#state = state;
    this.#onOpen = onOpen;
    byId('find').addEventListener('input', () => this.draw());
    byId('order').addEventListener('change', () => this.draw());
  }

  draw(): void {
    const { isOld, seenAt } = this.#state;
    const found = this.#inOrder(byId('find').value.toLowerCase(), byId('order').value);
    const here = found.slice(0, SHOWN);
    const most = Math.max(1, ...here.flatMap(({ bars }) => bars));
    here.forEach((key, at) => {
      const slot = this.#slots[at] ?? newRow(this.#onOpen);
      this.#slots[at] = slot;
      if (!slot.row.isConnected) byId('rows').append(slot.row);
      slot.draw(key, most, isOld);
    });
    for (const { row } of this.#slots.slice(here.length)) row.remove();
    byId('table').hidden = here.length === 0;
    const more = found.length - here.length;
    byId('rest').hidden = here.length > 0 && more === 0;
    const none = byId('find').value === '' ? 'No key is held or waited for.' : 'No key matches.';
    const rest = more > 0 ? `${counted(more, 'more key')}: find them by a part of their names.` : none;
    redraw(byId('rest'), seenAt === undefined ? 'Reading the keys …' : rest);
  }

  /** Their order stands while somebody points at one of them or has it in focus; new ones come to the end. */
  #inOrder(wanted: string, order: string): readonly Key[] {
    const found = [...this.#state.keys.values()].filter((key) => matches(key, wanted));
    const isHeld = byId('rows').matches(':hover') || byId('rows').contains(document.activeElement);
    const now = performance.now();
    if (`${order} ${wanted}` !== this.#sortedFor || (!isHeld && now - this.#sortedAt >= ORDER_STANDS)) {
      this.#sortedFor = `${order} ${wanted}`;
      this.#sortedAt = now;
      const compare = ORDERS[order] ?? (() => 0);
      found.sort((one, other) => compare(one, other) || (one.key < other.key ? -1 : 1));
      this.#places = new Map(found.map(({ key }, at) => [key, at]));
    }
    const placeOf = ({ key }: Key) => this.#places.get(key) ?? this.#places.size;
    return found.sort((one, other) => placeOf(one) - placeOf(other));
  }
}

function matches({ key, holder, process, waiters }: Key, wanted: string): boolean {
  if (wanted === '') return true;
  return [key, shownText(key), holder, process, ...waiters].some((text) => text?.toLowerCase().includes(wanted));
}

/** One row; it is used again for whatever key stands in its place. */
function newRow(onOpen: (key: string) => void) {
  let name = '';
  const open = element('button', { class: 'open', type: 'button', 'aria-haspopup': 'dialog' });
  open.addEventListener('click', () => onOpen(name));
  const [chart, holder] = [element('td', { class: 'more' }), element('td')];
  const [lease, token] = [element('td', { class: 'number more' }), element('td', { class: 'number more' })];
  const waiting = element('td', { class: 'number' });
  const row = element('tr', {}, element('td', {}, open), chart, holder, lease, waiting, token);
  const draw = (key: Key, most: number, isOld: boolean) => {
    name = key.key;
    redraw(open, name, () => [shown(name)]);
    redraw(chart, [most, key.bars], () => [
      bars(key.bars, most, `${counted(key.total, 'turn')} in five minutes`),
      ` ${number(key.total)}`,
    ]);
    redraw(holder, [key.holder, key.process, key.problem], () => [holderOf(key)]);
    redraw(lease, key.holder === undefined ? '–' : isOld ? '?' : leftOf(key));
    redraw(waiting, number(key.waiting));
    waiting.classList.toggle('warning', key.waiting > 0);
    redraw(token, key.token ?? '–');
  };
  return { row, draw };
}

function holderOf({ holder, process, problem }: Key): HTMLElement {
  if (holder === undefined) return element('span', { class: 'quiet' }, problem === undefined ? 'free' : 'not a lease');
  return process === undefined ? element('span', { class: 'mono' }, shown(holder)) : shown(process);
}

function leftOf({ endsAt }: Key): string {
  const left = endsAt - performance.now();
  return left > 0 ? duration(Math.ceil(left / 100) * 100) : 'ended';
}
