// One key, with what can be done about it.

import type { BoardTurn } from '../source.js';
import { bars } from './chart.js';
import { holderOf, type Key, question, type State } from './state.js';
import { byId, clock, counted, duration, element, number, redraw, shown } from './text.js';

/** So often the last turns of the key are asked for at most; milliseconds. */
const TURNS_EVERY = 1_000;

export class Details {
  readonly #dialog: HTMLDialogElement = byId('details');
  readonly #state: State;
  #key: string | undefined;
  #turnsAt = 0;

  constructor(state: State) {
    this.#state = state;
    this.#dialog.addEventListener('close', () => {
      this.#key = undefined;
    });
    byId('close').addEventListener('click', () => this.#dialog.close());
    byId('take').addEventListener('click', () => this.#take());
  }

  open(key: string): void {
    this.#key = key;
    this.#turnsAt = Number.NEGATIVE_INFINITY;
    redraw(byId('details-title'), key, () => [shown(key)]);
    redraw(byId('turns'), 'Reading …', () => [element('li', { class: 'quiet' }, 'Reading …')]);
    redraw(byId('said'), '');
    this.draw();
    this.#dialog.showModal();
  }

  draw(): void {
    if (this.#key === undefined) return;
    const key = this.#present;
    const { isOld, asOf, status } = this.#state;
    const old = `The keys cannot be read now. All of this is ${asOf}, and may be different by now.`;
    redraw(byId('old'), isOld ? old : '');
    byId('old').hidden = !isOld;
    redraw(byId('chart'), key?.bars ?? null, () =>
      key ? [bars(key.bars, Math.max(1, ...key.bars), `${counted(key.total, 'turn')} in five minutes`, 64)] : ['none'],
    );
    this.#drawFacts(key);
    this.#drawWaiters(key);
    byId('own-turns').hidden = status?.happened === undefined;
    byId('force').hidden = status?.token === undefined;
    void this.#readTurns(this.#key);
  }

  /** `undefined`: free, and without turns in the last minutes. */
  get #present(): Key | undefined {
    return this.#state.keys.get(this.#key ?? '');
  }

  #drawFacts(key: Key | undefined): void {
    const left = key?.holder === undefined ? undefined : Math.max(0, key.endsAt - performance.now());
    const ends = this.#state.isOld ? 'unknown' : `${duration(left ?? 0)}, unless it is renewed`;
    const callers = this.#state.status?.happened ? `, and ${counted(key?.callers ?? 0, 'caller')} in this process` : '';
    const admitted = key?.admittedAt === undefined ? '' : `, admitted at ${clock(key.admittedAt)}`;
    const transaction = key?.transaction;
    const facts: Readonly<Record<string, string | HTMLElement>> = {
      Holder: key?.holder === undefined ? 'free' : shown(holderOf(key)),
      'Lease ends in': left === undefined ? '–' : ends,
      Waiting: `${counted(key?.waiting ?? 0, 'process', 'processes')}${callers}`,
      Token: key?.token === undefined ? 'none' : `${key.token}${admitted}`,
      Turns: key ? number(Number(key.turns)) : '–',
      Transaction: transaction ? `open since ${clock(transaction.since)}, Postgres backend ${transaction.pid}` : 'none',
      Problem: key?.problem ? shown(key.problem) : 'none',
    };
    redraw(byId('facts'), Object.keys(facts), () =>
      Object.keys(facts).flatMap((name) => [element('dt', {}, name), element('dd')]),
    );
    // One by one: what somebody has selected, such as the holder, stays selected.
    for (const [at, value] of Object.values(facts).entries()) {
      redraw(byId('facts').children[at * 2 + 1], typeof value === 'string' ? value : value.textContent, () => [value]);
    }
  }

  /** Who waits in which order. */
  #drawWaiters(key: Key | undefined): void {
    const { waiters = [], waiting = 0 } = key ?? {};
    byId('waiters-title').hidden = byId('waiters').hidden = waiters.length === 0;
    // Each of several nodes has a queue of its own.
    const isInOrder = !this.#state.status?.redis.some(({ role }) => /^node \d/.test(role));
    redraw(byId('waiters-title'), isInOrder ? 'Who waits, the next one first' : 'Who waits, in no order');
    redraw(byId('waiters'), [waiters, waiting], () => {
      const places = waiters.map((name) => element('li', {}, shown(name ?? 'a process without a name')));
      const others = waiting - waiters.length;
      return others > 0 ? [...places, element('li', { class: 'quiet' }, `and ${number(others)} more`)] : places;
    });
  }

  async #readTurns(name: string): Promise<void> {
    if (performance.now() - this.#turnsAt < TURNS_EVERY) return;
    this.#turnsAt = performance.now();
    const { turns = [], error = 'No turn is remembered.' } = await asked(`history?key=${encodeURIComponent(name)}`);
    // The dialog was closed meanwhile, or shows another key.
    if (this.#key !== name) return;
    redraw(byId('turns'), [turns, error], () =>
      turns.length === 0 ? [element('li', { class: 'quiet' }, shown(error))] : turns.map(turnItem),
    );
  }

  /** Nothing is taken but from the holder that the question has named. */
  async #take(): Promise<void> {
    const [name, key] = [this.#key, this.#present];
    if ((key?.holder ?? key?.transaction ?? key?.problem) === undefined)
      return redraw(byId('said'), 'Nobody has this key.');
    if (!confirm(question(this.#state, key as Key))) return;
    redraw(byId('said'), 'Releasing …');
    const { released, error } = await asked('force-release', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-fenced-lock-board': this.#state.status?.token ?? '' },
      body: JSON.stringify({ key: name, holder: key?.holder ?? null }),
    });
    // The dialog was closed meanwhile, or shows another key.
    if (this.#key !== name) return;
    redraw(byId('said'), error ?? (released ? 'The key was taken.' : 'The key was free already.'));
  }
}

interface Answer {
  readonly turns?: readonly BoardTurn[];
  readonly released?: boolean;
  readonly error?: string;
}

async function asked(path: string, init?: RequestInit): Promise<Answer> {
  try {
    return await (await fetch(new URL(path, import.meta.url), init)).json();
  } catch {
    return { error: 'The board did not answer. If it was to release the key: a higher token says that it did.' };
  }
}

function turnItem({ turn, token, admittedAt, duration: took, outcome, process, error }: BoardTurn): HTMLElement {
  const end = outcome.replaceAll('-', ' ');
  const more = [token && `token ${token}`, took !== undefined && `in ${duration(took)}`, process && `by ${process}`];
  return element(
    'li',
    {},
    element('time', {}, admittedAt === undefined ? '–' : clock(admittedAt)),
    element('span', {}, turn === undefined ? '–' : `turn ${turn}`),
    element(
      'span',
      { class: outcome === 'committed' ? '' : 'bad' },
      shown(error === undefined ? end : `${end}: ${error}`),
    ),
    element('span', { class: 'said' }, shown(more.filter(Boolean).join(', '))),
  );
}
