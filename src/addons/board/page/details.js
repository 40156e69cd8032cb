// One key, with what can be done about it.

import { HeatChart } from './chart.js';
import { highest } from './keys.js';
import { clock, counted, duration, element, number, shown, write } from './text.js';
import { consequences, oldFacts } from './words.js';

/** So often the last turns of the key are asked for at most; milliseconds. */
const TURNS_EVERY = 1_000;

/** @typedef {import('./state.js').Key} Key */
/** @typedef {import('./state.js').State} State */
/**
 * @typedef {object} Turn
 * @property {string | null} turn
 * @property {string | null} token
 * @property {string | null} admittedAt
 * @property {number | null} duration
 * @property {string} outcome
 * @property {string | null} process
 * @property {string | null} error
 */

export class Details {
  #dialog = /** @type {HTMLDialogElement} */ (document.getElementById('details'));
  #state;
  /** @type {string | undefined} */
  #key;
  /** @type {HeatChart | undefined} */
  #chart;
  #old = element('p', { class: 'banner', role: 'status' });
  /** @type {Map<string, HTMLElement>} */
  #facts = new Map();
  #waitersTitle = element('h3', { id: 'who-waits' });
  #waiters = element('ol', { class: 'places', 'aria-labelledby': 'who-waits' });
  #waitersShown = '';
  #tokens = element('p', { class: 'passed' });
  #turns = element('ol', { class: 'feed turns', reversed: '' });
  /** What the list shows: the number of turns that the key had, and the answer. */
  #turnsOf = '';
  #turnsText = '';
  #askedAt = 0;
  #force = element('div', { class: 'force' });
  #said = element('p', { role: 'status' });
  #consequences = element('span');

  /** @param {State} state */
  constructor(state) {
    this.#state = state;
    this.#dialog.addEventListener('close', () => {
      this.#key = undefined;
    });
    this.#dialog.addEventListener('click', (event) => {
      if (event.target === this.#dialog) this.#dialog.close();
    });
  }

  /** @param {string} key */
  open(key) {
    this.#key = key;
    this.#chart = new HeatChart(560, 72);
    this.#chart.svg.setAttribute('width', '100%');
    this.#facts.clear();
    const close = element('button', { type: 'button' }, 'Close');
    close.addEventListener('click', () => this.#dialog.close());
    const facts = element('dl');
    for (const name of ['Holder', 'Lease ends in', 'Waiting', 'Token', 'Turns', 'Transaction', 'Problem']) {
      const fact = element('dd');
      this.#facts.set(name, fact);
      facts.append(element('div', {}, element('dt', {}, name), fact));
    }
    this.#dialog.replaceChildren(
      element('div', { class: 'top' }, element('h2', { id: 'details-title' }, shown(key)), close),
      this.#old,
      element('h3', {}, 'Turns in the last five minutes; the line: processes that waited'),
      this.#chart.svg,
      facts,
      this.#waitersTitle,
      this.#waiters,
      element('h3', {}, 'Tokens since this page was opened'),
      this.#tokens,
      element('h3', { id: 'last-turns' }, 'Last turns'),
      this.#turns,
      element('p', { class: 'quiet' }, turnsNote(this.#state.hello?.process === true)),
    );
    this.#turns.setAttribute('aria-labelledby', 'last-turns');
    this.#turns.replaceChildren(element('li', { class: 'quiet' }, 'Reading …'));
    this.#turnsOf = this.#turnsText = '';
    this.#askedAt = 0;
    write(this.#said, '');
    if (this.#state.hello?.token !== undefined) {
      this.#offer();
      this.#dialog.append(this.#force);
    }
    this.draw();
    this.#dialog.showModal();
  }

  draw() {
    if (this.#key === undefined) return;
    const key = this.#state.keys.get(this.#key);
    const { isOld } = this.#state;
    write(this.#old, oldFacts(this.#state));
    this.#old.hidden = !isOld;
    this.#fact('Holder', key ? holderOf(key) : 'free');
    const left = key?.holder == null ? undefined : key.endsAt - performance.now();
    const ends = isOld ? 'unknown' : `${duration(Math.max(0, left ?? 0))}, unless it is renewed`;
    this.#fact('Lease ends in', left === undefined ? '–' : ends);
    this.#fact('Waiting', waitingText(key, this.#state.hello?.process === true));
    this.#drawWaiters(key);
    this.#drawConsequences(key);
    this.#fact('Token', tokenText(key));
    this.#fact('Turns', key ? number(Number(key.turns)) : '–');
    this.#fact('Transaction', transactionText(key));
    this.#fact('Problem', key?.problem ? shown(key.problem) : '');
    write(this.#tokens, key?.tokens.length ? key.tokens.map(({ token }) => token).join('   ') : 'none yet');
    if (key) this.#chart?.draw(key, highest([key], 'turnBars'), highest([key], 'waitingBars'));
    this.#readTurns(this.#key, key ? `${key.turns} ${key.transaction?.pid}` : 'none');
  }

  /**
   * Who waits in which order.
   *
   * @param {Key | undefined} key
   */
  #drawWaiters(key) {
    const { waiters = [], waiting = 0 } = key ?? {};
    this.#waitersTitle.hidden = this.#waiters.hidden = waiters.length === 0;
    // Each of several nodes has a queue of its own.
    const isInOrder = !this.#state.status?.redis.some(({ role }) => /^node \d/.test(role));
    write(this.#waitersTitle, isInOrder ? 'Who waits, the next one first' : 'Who waits, in no order');
    const text = JSON.stringify([waiters, waiting]);
    if (text === this.#waitersShown) return;
    this.#waitersShown = text;
    const places = waiters.map((name) => element('li', {}, name === null ? 'a process without a name' : shown(name)));
    const others = waiting - waiters.length;
    if (others > 0) places.push(element('li', { class: 'quiet' }, `and ${number(others)} more`));
    this.#waiters.replaceChildren(...places);
  }

  /**
   * Reads the last turns if the key has had others since they were read.
   *
   * @param {string} name
   * @param {string} state
   */
  async #readTurns(name, state) {
    const now = performance.now();
    if (state === this.#turnsOf || now - this.#askedAt < TURNS_EVERY) return;
    this.#askedAt = now;
    this.#turnsOf = state;
    const items = await lastTurns(name);
    // The dialog was closed meanwhile, or shows another key.
    if (this.#key !== name) return;
    const text = items.map(({ textContent }) => textContent).join('\n');
    if (text === this.#turnsText) return;
    this.#turnsText = text;
    this.#turns.replaceChildren(...items);
  }

  /**
   * @param {string} name
   * @param {string | HTMLElement} value
   */
  #fact(name, value) {
    const fact = this.#facts.get(name);
    if (fact === undefined) return;
    /** @type {HTMLElement} */ (fact.parentElement).hidden = value === '';
    if (typeof value === 'string') write(fact, value);
    else if (fact.textContent !== value.textContent) fact.replaceChildren(value);
  }

  /** The first step: nothing is done yet. */
  #offer() {
    const ask = element('button', { type: 'button', class: 'danger' }, 'Force release …');
    ask.addEventListener('click', () => this.#confirm());
    this.#force.replaceChildren(element('div', { class: 'buttons' }, ask), this.#said);
  }

  /** The second: it says what will be done, to whom. */
  #confirm() {
    const name = /** @type {string} */ (this.#key);
    const key = this.#state.keys.get(name);
    const holder = key?.holder ?? null;
    write(this.#said, '');
    const yes = element('button', { type: 'button', class: 'danger' }, 'Release the key');
    const no = element('button', { type: 'button' }, 'Cancel');
    yes.addEventListener('click', () => this.#take(name, holder));
    no.addEventListener('click', () => this.#offer());
    this.#drawConsequences(key);
    this.#force.replaceChildren(
      element(
        'p',
        {},
        element('strong', {}, 'Take this key from '),
        ...whoHas(holder, key?.process ?? null),
        element('strong', {}, '?'),
        ' ',
        this.#consequences,
      ),
      element('div', { class: 'buttons' }, yes, no),
      this.#said,
    );
    // Not the one that does it.
    no.focus();
  }

  /**
   * Also while somebody thinks about it: a transaction may begin meanwhile.
   *
   * @param {Key | undefined} key
   */
  #drawConsequences(key) {
    write(this.#consequences, consequences(this.#state, key));
  }

  /**
   * @param {string} key
   * @param {string | null} holder
   */
  async #take(key, holder) {
    for (const button of this.#force.querySelectorAll('button')) button.disabled = true;
    write(this.#said, 'Releasing …');
    const text = await forceRelease(key, holder, this.#state.hello?.token ?? '');
    // The dialog was closed meanwhile, or shows another key.
    if (this.#key !== key) return;
    this.#offer();
    write(this.#said, text);
    if (this.#dialog.open) this.#force.querySelector('button')?.focus();
  }
}

/**
 * @param {string} key
 * @param {string | null} holder
 * @param {string} token
 */
async function forceRelease(key, holder, token) {
  try {
    const answer = await fetch(new URL('force-release', import.meta.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-fenced-lock-board': token },
      body: JSON.stringify({ key, holder }),
    });
    const { error, released } = await answer.json();
    if (error !== undefined) return error;
    return released ? 'The key was taken from its holder.' : 'The key was free already.';
  } catch {
    return 'The board did not answer. If the key has a higher token now, it was released.';
  }
}

/**
 * @param {string} key
 * @returns {Promise<HTMLElement[]>}
 */
async function lastTurns(key) {
  const address = new URL('history', import.meta.url);
  address.searchParams.set('key', key);
  try {
    const { turns, error } = await (await fetch(address)).json();
    if (error !== undefined) return [element('li', { class: 'quiet' }, shown(error))];
    if (turns.length === 0) return [element('li', { class: 'quiet' }, 'No turn is remembered.')];
    return turns.map(turnItem);
  } catch {
    return [element('li', { class: 'quiet' }, 'The board did not answer.')];
  }
}

/** @param {Turn} turn */
function turnItem({ turn, token, admittedAt, duration: took, outcome, process, error }) {
  const end = error === null ? outcome.replaceAll('-', ' ') : `${outcome.replaceAll('-', ' ')}: ${error}`;
  const item = element(
    'li',
    {},
    element('time', {}, admittedAt === null ? '–' : clock(admittedAt)),
    element('span', {}, turn === null ? '–' : `turn ${turn}`),
    element('span', { class: outcome === 'committed' ? undefined : 'bad' }, shown(end)),
  );
  const more = [token && `token ${token}`, took !== null && `in ${duration(took)}`, process && `by ${process}`];
  const said = more.filter(Boolean).join(', ');
  if (said !== '') item.append(element('span', { class: 'said' }, shown(said)));
  return item;
}

/** @param {boolean} inProcess */
function turnsNote(inProcess) {
  const kept = 'Postgres keeps the last 16 turns that committed, and the token and time of the last one.';
  return inProcess
    ? `${kept} Times, durations and turns that were rolled back are of this process, since the board was opened.`
    : kept;
}

/** @param {Key} key */
function holderOf({ holder, process }) {
  if (holder === null) return 'free';
  const id = element('span', { class: 'holder' }, shown(holder));
  return process === null ? id : element('span', {}, shown(process), ' ', id);
}

/**
 * The name of its process, if it is known, with its id in brackets.
 *
 * @param {string | null} holder
 * @param {string | null} process
 */
function whoHas(holder, process) {
  if (holder === null) return ['its next holder'];
  const id = element('span', { class: 'holder' }, shown(holder));
  return process === null ? [id] : [shown(process), ' (', id, ')'];
}

/**
 * @param {Key | undefined} key
 * @param {boolean} inProcess
 */
function waitingText(key, inProcess) {
  if (key === undefined) return '–';
  const processes = counted(key.waiting, 'process', 'processes');
  return inProcess ? `${processes}, and ${counted(key.callers, 'caller', 'callers')} in this process` : processes;
}

/** @param {Key | undefined} key */
function tokenText(key) {
  if (key?.token == null) return 'none';
  return key.admittedAt === null ? key.token : `${key.token}, admitted at ${clock(key.admittedAt)}`;
}

/** @param {Key | undefined} key */
function transactionText(key) {
  if (key?.transaction == null) return 'none';
  const { pid, since } = key.transaction;
  return `open since ${clock(since)}, Postgres backend ${pid}`;
}
