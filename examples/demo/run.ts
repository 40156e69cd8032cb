import { randomUUID } from 'node:crypto';
import type { Worker } from '../../test/support/worker.js';
import { command, type Fault, Freezer, RedisKiller } from './faults.js';
import type { Open, Report, StrategyName } from './messages.js';
import type { DemoOptions } from './options.js';
import type { Scene } from './stage.js';
import type { Tally } from './tally.js';
import type { Audience, RunView, Shop } from './view.js';

/** Short, so that the demo is; the default is 5 s, and a real pause is longer too. */
const LEASE_TIME = 1_000;
/** Past the lease, so that the others get their turn. */
const FROZEN_FOR = 1.5 * LEASE_TIME;
/** Long enough to be looked at. */
const FROZEN_FOR_THE_EYE = 4 * LEASE_TIME;
/** The first worker that comes to the middle of this sale is the one that is frozen. */
const FROZEN_IN_SALE = 3;
/** A frozen worker says nothing for a while, a broken one for ever. */
const SILENT_AT_MOST = 60_000;

/** One run: all buyers at once, one worker frozen in the middle of a sale, and the books afterwards. */
export async function run(
  scene: Scene,
  strategy: StrategyName,
  { units, buyers, board }: DemoOptions,
  audience: Audience,
): Promise<Tally> {
  const { books, workers } = scene;
  const product = `${strategy} ${randomUUID()}`;
  const stockId = await books.newProduct(product, units);
  const view: RunView = { strategy, units, shops: workers.map(newShop) };
  const everybody = Array.from({ length: buyers }, (_, n) => `buyer ${n + 1}`);
  await Promise.all(
    workers.map(async (worker, index) => {
      const open: Open = {
        type: 'open',
        strategy,
        site: {
          databaseUrl: scene.databaseUrl,
          redisUrl: scene.redis.url,
          key: product,
          leaseTime: LEASE_TIME,
          name: shopName(index),
        },
        stockId,
        // Dealt out like cards.
        buyers: everybody.filter((_, n) => n % workers.length === index),
        waitsInSale: FROZEN_IN_SALE,
      };
      worker.send(open);
      await nextReport(worker);
    }),
  );

  audience.begins(view);
  const since = performance.now();
  const kills = strategy === '$withLock, Redis killed';
  const fault = kills
    ? new RedisKiller(scene.redis, FROZEN_FOR, audience)
    : new Freezer(view, board ? FROZEN_FOR_THE_EYE : FROZEN_FOR, audience);
  for (const worker of workers) command(worker, 'sell');
  await Promise.all(view.shops.map((shop) => follow(shop, fault, audience)));
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
async function follow(shop: Shop, fault: Fault, audience: Audience): Promise<void> {
  for (;;) {
    const { event, detail } = await nextReport(shop.worker);
    if (event === 'sold') shop.sold++;
    else if (event === 'sold out') shop.soldOut++;
    else if (event === 'in the middle') fault.reached(shop);
    else if (event === 'refused') {
      shop.refused++;
      audience.note(`${shop.name}: a write is refused (${detail}), the buyer tries again`);
    } else if (event === 'all served') return;
  }
}

async function nextReport(worker: Worker): Promise<Report> {
  const report = await worker.next<Report>('report', { within: SILENT_AT_MOST });
  if (report.event === 'failed') throw new Error(`A worker failed: ${report.detail}`);
  return report;
}

function newShop(worker: Worker, index: number): Shop {
  return { name: shopName(index), worker, sold: 0, soldOut: 0, refused: 0, frozen: false };
}

function shopName(index: number): string {
  return `worker ${index + 1}`;
}
