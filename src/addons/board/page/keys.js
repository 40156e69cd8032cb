// The table of keys. One page of it is in the document, whatever there is behind it.

import { HeatChart } from './chart.js';
import { duration, element, number, shown, shownText, write } from './text.js';
import { rateText } from './words.js';

/** @typedef {import('./state.js').Key} Key */

const PAGE = 25;
/** How long an order stands at least, so that rows do not jump; milliseconds. */
const ORDER_STANDS = 2_000;

/** @type {Record<string, (one: Key, other: Key) => number>} */
const ORDERS = {
  busy: (one, other) => other.total - one.total || other.waiting - one.waiting,
  waiting: (one, other) => other.waiting - one.waiting || other.total - one.total,
  ending: (one, other) => endOf(one) - endOf(other),
  name: () => 0,
};

/** @param {Key} key */
function endOf({ holder, endsAt }) {
  return holder === null ? Number.POSITIVE_INFINITY : endsAt;
}

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

export class KeyTable {
  #find = /** @type {HTMLInputElement} */ (byId('find'));
  #order = /** @type {HTMLSelectElement} */ (byId('order'));
  #previous = /** @type {HTMLButtonElement} */ (byId('previous'));
  #next = /** @type {HTMLButtonElement} */ (byId('next'));
  #table = byId('table');
  #rows = byId('rows');
  /** @type {KeyRow[]} */
  #slots = [];
  /** @type {string[]} */
  #sorted = [];
  #sortedAt = 0;
  #sortedFor = '';
  #page = 0;
  #onOpen;

  /**
   * @param {(key: string) => void} onOpen
   * @param {() => void} changed
   */
  constructor(onOpen, changed) {
    this.#onOpen = onOpen;
    const anew = () => {
      this.#page = 0;
      changed();
    };
    this.#find.addEventListener('input', anew);
    this.#order.addEventListener('change', anew);
    for (const [button, by] of /** @type {const} */ ([
      [this.#previous, -1],
      [this.#next, 1],
    ])) {
      button.addEventListener('click', () => {
        this.#page += by;
        changed();
      });
    }
  }

  /**
   * @param {import('./state.js').State} state
   */
  draw({ keys, known, isOld, status }) {
    const found = this.#inOrder(keys);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    this.#page = Math.min(Math.max(0, this.#page), pages - 1);
    const from = this.#page * PAGE;
    const here = found.slice(from, from + PAGE).flatMap((key) => keys.get(key) ?? []);
    const mostTurns = highest(here, 'turnBars');
    const mostWaiting = highest(here, 'waitingBars');
    here.forEach((key, at) => {
      this.#slots[at] ??= new KeyRow(this.#onOpen);
      const slot = this.#slots[at];
      if (!slot.row.isConnected) this.#rows.append(slot.row);
      slot.draw(key, mostTurns, mostWaiting, isOld, status?.minute);
    });
    for (const slot of this.#slots.slice(here.length)) slot.row.remove();
    this.#table.hidden = here.length === 0;
    const empty = byId('empty');
    empty.hidden = here.length > 0;
    if (here.length === 0) write(empty, emptyText(known, this.#find.value));
    byId('pager').hidden = pages === 1;
    write(byId('range'), `${number(from + 1)} to ${number(from + here.length)} of ${number(found.length)}`);
    this.#previous.disabled = this.#page === 0;
    this.#next.disabled = this.#page === pages - 1;
  }

  /**
   * Their order stands while somebody points at one of them or has it in focus.
   *
   * @param {Map<string, Key>} keys
   */
  #inOrder(keys) {
    const wanted = this.#find.value.toLowerCase();
    const order = this.#order.value;
    const asked = `${order} ${wanted}`;
    const held = this.#rows.matches(':hover') || this.#rows.contains(document.activeElement);
    const now = performance.now();
    if (asked === this.#sortedFor && (held || now - this.#sortedAt < ORDER_STANDS)) return this.#withNew(keys, wanted);
    this.#sortedFor = asked;
    this.#sortedAt = now;
    const compare = ORDERS[order] ?? (() => 0);
    this.#sorted = [...keys.values()]
      .filter((key) => matches(key, wanted))
      .sort((one, other) => compare(one, other) || (one.key < other.key ? -1 : 1))
      .map(({ key }) => key);
    return this.#sorted;
  }

  /**
   * @param {Map<string, Key>} keys
   * @param {string} wanted
   */
  #withNew(keys, wanted) {
    const sorted = this.#sorted.filter((key) => keys.has(key));
    const there = new Set(sorted);
    for (const key of keys.values()) if (!there.has(key.key) && matches(key, wanted)) sorted.push(key.key);
    this.#sorted = sorted;
    return sorted;
  }
}

/**
 * @param {Key} key
 * @param {string} wanted
 */
function matches({ key, holder, process, waiters }, wanted) {
  if (wanted === '') return true;
  return [key, shownText(key), holder, process, ...waiters].some((text) => text?.toLowerCase().includes(wanted));
}

/**
 * @param {Key[]} keys
 * @param {'turnBars' | 'waitingBars'} bars
 */
export function highest(keys, bars) {
  let most = 1;
  for (const key of keys) for (const count of key[bars]) most = Math.max(most, count);
  return most;
}

/**
 * @param {boolean} known
 * @param {string} find
 */
function emptyText(known, find) {
  if (!known) return 'Reading the keys …';
  if (find !== '') return 'No key matches.';
  return 'No key is held or waited for. A key appears here when a caller takes it.';
}

/** One row; it is used again for whatever key stands in its place. */
class KeyRow {
  #key = '';
  #chart = new HeatChart(120, 28);
  #open = element('button', { class: 'open', type: 'button', 'aria-haspopup': 'dialog' });
  #rate = element('span');
  #holder = element('td', { role: 'cell' });
  #holderText = '';
  #lease = element('td', { role: 'cell', class: 'number', 'data-label': 'lease' });
  #waiting = element('td', { role: 'cell', class: 'number', 'data-label': 'waiting' });
  #token = element('span');
  #changedAt = 0;

  /** @param {(key: string) => void} onOpen */
  constructor(onOpen) {
    this.#open.addEventListener('click', () => onOpen(this.#key));
    const heat = element('div', { class: 'heat' }, this.#chart.svg, this.#rate);
    this.row = element(
      'tr',
      { role: 'row' },
      element('td', { role: 'cell' }, this.#open),
      element('td', { role: 'cell' }, heat),
      this.#holder,
      this.#lease,
      this.#waiting,
      element('td', { role: 'cell', class: 'number', 'data-label': 'token' }, this.#token),
    );
  }

  /**
   * @param {Key} key
   * @param {number} mostTurns
   * @param {number} mostWaiting
   * @param {boolean} isOld
   * @param {{ ms: number, bars: number }} [minute]
   */
  draw(key, mostTurns, mostWaiting, isOld, minute) {
    const another = key.key !== this.#key || this.#open.firstChild === null;
    if (another) this.#open.replaceChildren(shown(key.key));
    this.#key = key.key;
    this.#chart.draw(key, mostTurns, mostWaiting);
    write(this.#rate, rateText(key.turnBars, minute));
    this.#drawHolder(key);
    write(this.#lease, key.holder === null ? '–' : isOld ? '?' : leftOf(key));
    write(this.#waiting, number(key.waiting));
    this.#waiting.classList.toggle('warm', key.waiting > 0);
    write(this.#token, key.token ?? '–');
    if (!another && key.changedAt > this.#changedAt) flash(this.#token);
    this.#changedAt = key.changedAt;
  }

  /** @param {Key} key */
  #drawHolder({ holder, process, problem }) {
    const text = `${process} ${holder} ${problem}`;
    if (text === this.#holderText) return;
    this.#holderText = text;
    const nobody = problem === null ? 'free' : 'not a lease';
    this.#holder.classList.toggle('idle', holder === null);
    if (holder === null) this.#holder.replaceChildren(nobody);
    else if (process !== null) this.#holder.replaceChildren(shown(process));
    else this.#holder.replaceChildren(element('span', { class: 'holder' }, shown(holder)));
  }
}

/** @param {Key} key */
function leftOf({ endsAt }) {
  const left = endsAt - performance.now();
  return left > 0 ? duration(Math.ceil(left / 100) * 100) : 'ended';
}

/** @param {Element} place */
function flash(place) {
  place.classList.remove('fresh');
  // Begun anew in the next frame; without a read of the layout the class would not have been away.
  requestAnimationFrame(() => place.classList.add('fresh'));
}
