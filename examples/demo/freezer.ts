import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from '../../test/support/worker.js';
import type { Command } from './messages.js';
import type { Audience, RunView, Shop } from './view.js';

/** And so much longer on a slow machine, until another worker has sold something. */
const FROZEN_AT_MOST = 10_000;

/** Freezes the first worker that comes to the middle of its sale; lets the others go on. */
export class Freezer {
  readonly #view: RunView;
  readonly #frozenFor: number;
  readonly #audience: Audience;
  #done: Promise<void> | undefined;

  constructor(view: RunView, frozenFor: number, audience: Audience) {
    this.#view = view;
    this.#frozenFor = frozenFor;
    this.#audience = audience;
  }

  /** This worker has read and not written yet, and waits to be told to go on. */
  reached(shop: Shop): void {
    if (this.#done === undefined) this.#done = this.#freeze(shop);
    else command(shop.worker, 'go on');
  }

  async #freeze(shop: Shop): Promise<void> {
    const { worker, name } = shop;
    worker.freeze();
    shop.frozen = true;
    const soldBefore = this.#soldByOthers(shop);
    this.#audience.note(`${name}: has read the quantity, is frozen before it writes`);
    const since = performance.now();
    await sleep(this.#frozenFor);
    while (this.#soldByOthers(shop) === soldBefore && performance.now() - since < FROZEN_AT_MOST) await sleep(20);
    const seconds = ((performance.now() - since) / 1_000).toFixed(1);
    const sold = this.#soldByOthers(shop) - soldBefore;
    this.#audience.note(`${name}: goes on after ${seconds} s; the others have sold ${sold} meanwhile`);
    shop.frozen = false;
    command(worker, 'go on');
    worker.thaw();
  }

  #soldByOthers(frozen: Shop): number {
    return this.#view.shops.filter((shop) => shop !== frozen).reduce((total, { sold }) => total + sold, 0);
  }
}

export function command(worker: Worker, type: Command['type']): void {
  const message: Command = { type };
  worker.send(message);
}
