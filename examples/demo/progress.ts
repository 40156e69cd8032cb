import logUpdate from 'log-update';
import { lost, type Tally } from './tally.js';
import { colors, isLive, say } from './terminal.js';
import type { Audience, RunView, Shop } from './view.js';

const BAR_WIDTH = 40;
const FRAME = 80;
const SECOND = 1_000;

export interface Progress extends Audience {
  /** Nothing more is drawn. Also for the case that a run has no end. */
  stop(): void;
}

export function newProgress(): Progress {
  return isLive ? new LiveProgress() : new PlainProgress();
}

/** A line for each event, and one a second. */
class PlainProgress implements Progress {
  #timer: NodeJS.Timeout | undefined;

  begins(view: RunView): void {
    say(`\n${view.strategy}:`);
    this.#timer = setInterval(() => say(`  ${view.shops.map(inWords).join(' | ')}`), SECOND);
  }

  note(line: string): void {
    say(`  ${line}`);
  }

  ends(tally: Tally): void {
    this.stop();
    say(`  ${summary(tally)}`);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** A bar for each worker, drawn over and over; the events below. */
class LiveProgress implements Progress {
  #timer: NodeJS.Timeout | undefined;
  #view: RunView | undefined;
  #notes: string[] = [];

  begins(view: RunView): void {
    this.#view = view;
    this.#notes = [];
    this.#timer = setInterval(() => this.#draw(), FRAME);
  }

  note(line: string): void {
    this.#notes.push(line);
  }

  ends(tally: Tally): void {
    this.#notes.push(summary(tally));
    this.stop();
  }

  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#draw();
    logUpdate.done();
  }

  #draw(): void {
    if (this.#view === undefined) return;
    const { strategy, units, shops } = this.#view;
    logUpdate(
      [
        '',
        colors.bold(strategy),
        ...shops.map((shop) => `  ${bar(shop, units)}`),
        ...this.#notes.map((line) => colors.dim(`  ${line}`)),
      ].join('\n'),
    );
  }
}

function bar(shop: Shop, units: number): string {
  const { name, sold, soldOut, refused, frozen } = shop;
  // A worker that sells more than there is fills its bar and no more; the number tells the rest.
  const full = Math.min(BAR_WIDTH, Math.round((sold / units) * BAR_WIDTH));
  const paint = frozen ? colors.cyan : colors.green;
  const drawn = paint('█'.repeat(full)) + colors.dim('░'.repeat(BAR_WIDTH - full));
  const count = `${String(sold).padStart(4)} sold${some(soldOut, 'sent away')}${some(refused, 'refused')}`;
  return `${name} ${drawn} ${count}${frozen ? colors.cyan(colors.bold('  frozen')) : ''}`;
}

function inWords({ name, sold, soldOut, frozen }: Shop): string {
  return `${name}: ${sold} sold${some(soldOut, 'sent away')}${frozen ? ' (frozen)' : ''}`;
}

function some(count: number, what: string): string {
  return count > 0 ? `, ${count} ${what}` : '';
}

function summary(tally: Tally): string {
  const { sold, units, seconds } = tally;
  return `${sold} sold of ${units}, ${lost(tally)} lost, in ${seconds.toFixed(1)} s`;
}
