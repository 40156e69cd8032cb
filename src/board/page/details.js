// One key, with what can be done about it.

import { HeatChart } from './chart.js';
import { highest } from './keys.js';
import { clock, counted, duration, element, number, shown, write } from './text.js';

/** @typedef {import('./state.js').Key} Key */
/** @typedef {import('./state.js').State} State */

export class Details {
  #dialog = /** @type {HTMLDialogElement} */ (document.getElementById('details'));
  #state;
  /** @type {string | undefined} */
  #key;
  /** @type {HeatChart | undefined} */
  #chart;
  /** @type {Map<string, HTMLElement>} */
  #facts = new Map();
  #tokens = element('p', { class: 'passed' });
  #force = element('div', { class: 'force' });
  #said = element('p', { role: 'status' });

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
      element('h3', {}, 'Turns in the last five minutes; the line: processes that waited'),
      this.#chart.svg,
      facts,
      element('h3', {}, 'Tokens since this page was opened'),
      this.#tokens,
    );
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
    this.#fact('Holder', key ? holderOf(key) : 'free');
    const left = key?.holder == null ? undefined : key.endsAt - performance.now();
    this.#fact('Lease ends in', left === undefined ? '–' : `${duration(Math.max(0, left))}, unless it is renewed`);
    this.#fact('Waiting', waitingText(key, this.#state.hello?.process === true));
    this.#fact('Token', tokenText(key));
    this.#fact('Turns', key ? number(Number(key.turns)) : '–');
    this.#fact('Transaction', transactionText(key));
    this.#fact('Problem', key?.problem ? shown(key.problem) : '');
    write(this.#tokens, key?.tokens.length ? key.tokens.map(({ token }) => token).join('   ') : 'none yet');
    if (key) this.#chart?.draw(key, highest([key], 'turnBars'), highest([key], 'waitingBars'));
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
    const holder = this.#state.keys.get(name)?.holder ?? null;
    write(this.#said, '');
    const yes = element('button', { type: 'button', class: 'danger' }, 'Take the key');
    const no = element('button', { type: 'button' }, 'Leave it');
    yes.addEventListener('click', () => this.#take(name, holder));
    no.addEventListener('click', () => this.#offer());
    const who = holder === null ? 'whoever comes for it now' : element('span', { class: 'holder' }, shown(holder));
    this.#force.replaceChildren(
      element(
        'p',
        {},
        element('strong', {}, 'Take this key from '),
        who,
        element('strong', {}, '?'),
        ' The transaction that is at work under it is ended and rolled back. What its holder still has in hand becomes ' +
          'stale. The next one that waits gets the key. No update is lost.',
      ),
      element('div', { class: 'buttons' }, yes, no),
      this.#said,
    );
    // Not the one that does it.
    no.focus();
  }

  /**
   * @param {string} key
   * @param {string | null} holder
   */
  async #take(key, holder) {
    for (const button of this.#force.querySelectorAll('button')) button.disabled = true;
    write(this.#said, 'Taking it …');
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
    return released ? 'The key was taken from its holder.' : 'Nobody had the key any more.';
  } catch {
    return 'The board did not answer. Look whether the key has another token now.';
  }
}

/** @param {Key} key */
function holderOf({ holder, process }) {
  if (holder === null) return 'free';
  const id = element('span', { class: 'holder' }, shown(holder));
  return process === null ? id : element('span', {}, shown(process), ' ', id);
}

/**
 * @param {Key | undefined} key
 * @param {boolean} inProcess
 */
function waitingText(key, inProcess) {
  if (key === undefined) return '–';
  const processes = counted(key.waiting, 'process', 'processes');
  return inProcess ? `${processes}; ${counted(key.callers, 'caller', 'callers')} of this one` : processes;
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
  return `at work since ${clock(since)}, backend ${pid} of Postgres`;
}
