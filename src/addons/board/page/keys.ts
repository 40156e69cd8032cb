// The table of keys. One page of it is in the document, whatever there is behind it.

import { bars } from './chart.js';
import type { Key, State } from './state.js';
import { byId, counted, duration, element, number, redraw, shown, shownText } from './text.js';

const PAGE = 25;
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
  #sorted: readonly string[] = [];
  #sortedAt = 0;
  #sortedFor = '';
  #page = 0;

  constructor(state: State, onOpen: (key: string) => void) {
    this.#state = state;
    this.#onOpen = onOpen;
    const turnTo = (page: number) => {
      this.#page = page;
      this.draw();
    };
    byId('find').addEventListener('input', () => turnTo(0));
    byId('order').addEventListener('change', () => turnTo(0));
    byId('previous').addEventListener('click', () => turnTo(this.#page - 1));
    byId('next').addEventListener('click', () => turnTo(this.#page + 1));
  }

  draw(): void {
    const { keys, isOld, known } = this.#state;
    const found = this.#inOrder(byId('find').value.toLowerCase(), byId('order').value);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    this.#page = Math.min(Math.max(0, this.#page), pages - 1);
    const from = this.#page * PAGE;
    const here = found.slice(from, from + PAGE).flatMap((key) => keys.get(key) ?? []);
    const most = Math.max(1, ...here.flatMap(({ bars }) => bars));
    here.forEach((key, at) => {
      const slot = this.#slots[at] ?? newRow(this.#onOpen);
      this.#slots[at] = slot;
      if (!slot.row.isConnected) byId('rows').append(slot.row);
      slot.draw(key, most, isOld);
    });
    for (const { row } of this.#slots.slice(here.length)) row.remove();
    byId('table').hidden = here.length === 0;
    byId('empty').hidden = here.length > 0;
    const none = byId('find').value === '' ? 'No key is held or waited for.' : 'No key matches.';
    redraw(byId('empty'), known ? none : 'Reading the keys …');
    byId('pager').hidden = pages === 1;
    redraw(byId('range'), `${number(from + 1)} to ${number(from + here.length)} of ${number(found.length)}`);
    byId('previous').disabled = this.#page === 0;
    byId('next').disabled = this.#page === pages - 1;
  }

  /** Their order stands while somebody points at one of them or has it in focus; new ones come to the end. */
  #inOrder(wanted: string, order: string): readonly string[] {
    const found = [...this.#state.keys.values()].filter((key) => matches(key, wanted));
    const isHeld = byId('rows').matches(':hover') || byId('rows').contains(document.activeElement);
    const now = performance.now();
    if (`${order} ${wanted}` === this.#sortedFor && (isHeld || now - this.#sortedAt < ORDER_STANDS)) {
      const names = found.map(({ key }) => key);
      const there = new Set(names);
      this.#sorted = [...new Set([...this.#sorted.filter((key) => there.has(key)), ...names])];
      return this.#sorted;
    }
    this.#sortedFor = `${order} ${wanted}`;
    this.#sortedAt = now;
    const compare = ORDERS[order] ?? (() => 0);
    found.sort((one, other) => compare(one, other) || (one.key < other.key ? -1 : 1));
    this.#sorted = found.map(({ key }) => key);
    return this.#sorted;
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
