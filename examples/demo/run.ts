import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from '../../test/support/worker.js';
import type { Command, Open, Report, StrategyName } from './messages.js';
import type { DemoOptions } from './options.js';
import type { Scene } from './stage.js';
import type { Tally } from './tally.js';

/** Short, so that the demo is; a real lease is rather 30 s, and a real pause too. */
export const LEASE_TIME = 1_000;
/** How long a worker is frozen: past its lease, so that the others get their turn. */
const FROZEN_FOR = 1.5 * LEASE_TIME;
/** And so much longer on a slow machine, until another worker has sold something. */
const FROZEN_AT_MOST = 10_000;
/** The first worker that comes to the middle of this sale is the one that is frozen. */
const FROZEN_IN_SALE = 3;
/** A frozen worker says nothing for a while, a broken one for ever. */
const SILENT_AT_MOST = 60_000;

export interface Shop {
  readonly name: string;
  readonly worker: Worker;
  sold: number;
  soldOut: number;
  refused: number;
  frozen: boolean;
}

/** What is known of a run while it goes on. */
export interface RunView {
  readonly strategy: StrategyName;
  readonly units: number;
  readonly shops: readonly Shop[];
}

export interface Audience {
  begins(view: RunView): void;
  note(line: string): void;
  ends(tally: Tally): void;
}

/** One run: all buyers at once, one worker frozen in the middle of a sale, and the books afterwards. */
export async function run(
  scene: Scene,
  strategy: StrategyName,
  { units, buyers }: DemoOptions,
  audience: Audience,
): Promise<Tally> {
  const { books, workers, databaseUrl, redis } = scene;
  const product = `${strategy} ${randomUUID()}`;
  const stockId = await books.newProduct(product, units);
  const view: RunView = { strategy, units, shops: workers.map(newShop) };
  const site = { databaseUrl, redisUrl: redis.url, key: `stock:${product}`, leaseTime: LEASE_TIME };

  await Promise.all(
    workers.map(async (worker, index) => {
      const mine = Array.from({ length: buyers }, (_, n) => `buyer ${n + 1}`).filter(
        (_, n) => n % workers.length === index,
      );
      const open: Open = { type: 'open', strategy, site, stockId, buyers: mine, waitsInSale: FROZEN_IN_SALE };
      worker.send(open);
      await nextReport(worker);
    }),
  );
  audience.begins(view);
  const since = performance.now();
  const freezer = new Freezer(view, audience);
  for (const worker of workers) command(worker, 'sell');
  await Promise.all(view.shops.map((shop) => follow(shop, freezer, audience)));
  const seconds = (performance.now() - since) / 1_000;

  const sum = (count: (shop: Shop) => number) => view.shops.reduce((total, shop) => total + count(shop), 0);
  const tally: Tally = {
    strategy,
    units,
    buyers,
    sold: sum((shop) => shop.sold),
    orders: await books.orders(stockId),
    left: await books.left(stockId),
    refused: sum((shop) => shop.refused),
    seconds,
  };
  audience.ends(tally);
  return tally;
}

/** Counts what a worker tells its buyers, until all of them are served. */
async function follow(shop: Shop, freezer: Freezer, audience: Audience): Promise<void> {
  for (;;) {
    const { event, detail } = await nextReport(shop.worker);
    if (event === 'sold') shop.sold++;
    else if (event === 'sold out') shop.soldOut++;
    else if (event === 'in the middle') freezer.reached(shop);
    else if (event === 'refused') {
      shop.refused++;
      audience.note(`${shop.name}: a write is refused (${detail}), the buyer tries again`);
    } else if (event === 'all served') return await freezer.done;
  }
}

/** Freezes the first worker that comes to the middle of its sale; lets the others go on. */
class Freezer {
  readonly #view: RunView;
  readonly #audience: Audience;
  done: Promise<void> | undefined;

  constructor(view: RunView, audience: Audience) {
    this.#view = view;
    this.#audience = audience;
  }

  reached(shop: Shop): void {
    if (this.done === undefined) this.done = this.#freeze(shop);
    else command(shop.worker, 'go on');
  }

  async #freeze(shop: Shop): Promise<void> {
    const { worker, name } = shop;
    worker.freeze();
    shop.frozen = true;
    const soldBefore = this.#soldByOthers(shop);
    this.#audience.note(`${name}: has read the quantity, is frozen before it writes`);
    const since = performance.now();
    await sleep(FROZEN_FOR);
    while (this.#soldByOthers(shop) === soldBefore && performance.now() - since < FROZEN_AT_MOST) await sleep(20);
    const sold = this.#soldByOthers(shop) - soldBefore;
    this.#audience.note(`${name}: goes on after ${seconds(since)} s; the others have sold ${sold} meanwhile`);
    shop.frozen = false;
    command(worker, 'go on');
    worker.thaw();
  }

  #soldByOthers(frozen: Shop): number {
    return this.#view.shops.filter((shop) => shop !== frozen).reduce((total, { sold }) => total + sold, 0);
  }
}

async function nextReport(worker: Worker): Promise<Report> {
  const report = await worker.next<Report>('report', { within: SILENT_AT_MOST });
  if (report.event === 'failed') throw new Error(`A worker failed: ${report.detail}`);
  return report;
}

function command(worker: Worker, type: Command['type']): void {
  const message: Command = { type };
  worker.send(message);
}

function newShop(worker: Worker, index: number): Shop {
  return { name: `worker ${index + 1}`, worker, sold: 0, soldOut: 0, refused: 0, frozen: false };
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1);
}
