// One shop process: serves all of its buyers at once, and reports what it tells each of them.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { FreezePoint } from '../demo/freeze-point.js';
import type { Command, Open, Report } from './messages.js';
import { STRATEGIES } from './strategies/index.js';
import type { SaleResult, Strategy } from './strategies/strategy.js';

/** A number of a sale that no process reaches. */
const NEVER = Number.POSITIVE_INFINITY;
/** As many as a pool has connections. */
const WARM_UP = 10;

let start: () => void = () => {};
let goOn: () => void = () => {};

process.on('message', (message: Open | Command) => {
  if (message.type === 'sell') start();
  else if (message.type === 'go on') goOn();
  else run(message as Open).catch((error: unknown) => report('failed', inspect(error)));
});
// Ctrl-C reaches the whole process group; the one that started us ends us.
process.on('SIGINT', () => {});

async function run({ strategy, site, stockId, warmUpId, buyers, waitsInSale }: Open): Promise<void> {
  const shop = STRATEGIES[strategy]?.open(site);
  if (shop === undefined) throw new Error(`no strategy is called '${strategy}'`);
  const freezePoint = new FreezePoint(waitsInSale ?? NEVER, () => report('in the middle'));
  goOn = () => freezePoint.goOn();
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
  const first = { stockId: warmUpId, buyer: 'nobody', think: () => sleep(1) };
  await Promise.all(Array.from({ length: WARM_UP }, () => shop.sell(first)));
  report('ready');
  await started;
  try {
    await Promise.all(buyers.map((buyer) => serve(shop, freezePoint, stockId, buyer)));
  } finally {
    await shop.close();
  }
  report('all served');
}

/** A buyer who is refused tries again: nothing was sold. */
async function serve(shop: Strategy, freezePoint: FreezePoint, stockId: number, buyer: string): Promise<void> {
  for (;;) {
    const result = await trySale(shop, freezePoint, stockId, buyer);
    if (result !== 'refused') return report(result);
    report('refused');
  }
}

async function trySale(
  shop: Strategy,
  freezePoint: FreezePoint,
  stockId: number,
  buyer: string,
): Promise<SaleResult | 'refused'> {
  const visitor = freezePoint.visitor();
  const think = async () => {
    await sleep(1 + Math.random() * 2);
    await visitor.pass();
  };
  try {
    return await shop.sell({ stockId, buyer, think });
  } catch (error) {
    if (shop.isRefusal?.(error) !== true) throw error;
    return 'refused';
  } finally {
    visitor.ended();
  }
}

function report(event: Report['event'], detail?: string): void {
  const message: Report = { type: 'report', event, ...(detail !== undefined && { detail }) };
  process.send?.(message);
}
