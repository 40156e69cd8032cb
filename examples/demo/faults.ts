import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../../test/support/servers/index.js';
import type { Worker } from '../../test/support/worker.js';
import type { Command } from './messages.js';
import type { Audience, RunView, Shop } from './view.js';

/** And so much longer on a slow machine, until another worker has sold something. */
const FROZEN_AT_MOST = 10_000;

/** What goes wrong in a run. */
export interface Fault {
  /** This worker has read and not written yet, and waits to be told to go on. */
  reached(shop: Shop): void;
}

/** Freezes the first worker that comes to the middle of its sale; lets the others go on. */
export class Freezer implements Fault {
  readonly #view: RunView;
  readonly #frozenFor: number;
  readonly #audience: Audience;
  #done: Promise<void> | undefined;

  constructor(view: RunView, frozenFor: number, audience: Audience) {
    this.#view = view;
    this.#frozenFor = frozenFor;
    this.#audience = audience;
  }

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

/** Kills Redis when the first worker comes to the middle of its sale, and starts it again, empty. */
export class RedisKiller implements Fault {
  readonly #redis: RedisServer;
  readonly #goneFor: number;
  readonly #audience: Audience;
  #done: Promise<void> | undefined;

  constructor(redis: RedisServer, goneFor: number, audience: Audience) {
    this.#redis = redis;
    this.#goneFor = goneFor;
    this.#audience = audience;
  }

  reached({ name, worker }: Shop): void {
    this.#done ??= this.#kill(name);
    command(worker, 'go on');
  }

  async #kill(name: string): Promise<void> {
    await this.#redis.killHard();
    this.#audience.note(`Redis is killed while ${name} has read the quantity and has not written yet`);
    await sleep(this.#goneFor);
    await this.#redis.start();
    this.#audience.note(`Redis is back after ${(this.#goneFor / 1_000).toFixed(1)} s; it has forgotten all locks`);
  }
}

export function command(worker: Worker, type: Command['type']): void {
  const message: Command = { type };
  worker.send(message);
}
