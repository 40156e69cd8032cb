// One shop process: serves all of its buyers at once, and reports what it tells each of them.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { FreezePoint } from './freeze-point.js';
import type { Command, Open, Report, StrategyName } from './messages.js';
import type { SaleResult } from './sale.js';
import { noLock } from './strategies/no-lock.js';
import { plainRedisLock } from './strategies/plain-redis-lock.js';
import type { Site, Strategy } from './strategies/strategy.js';
import { withLock } from './strategies/with-lock.js';

const STRATEGIES: Readonly<Record<StrategyName, (site: Site) => Strategy>> = {
  'no lock': noLock,
  'plain Redis lock': plainRedisLock,
  $withLock: withLock,
  '$withLock, Redis killed': withLock,
};

let start: () => void = () => {};
let goOn: () => void = () => {};

process.on('message', (message: Open | Command) => {
  if (message.type === 'sell') start();
  else if (message.type === 'go on') goOn();
  else run(message as Open).catch((error: unknown) => report('failed', inspect(error)));
});
// Ctrl-C reaches the whole process group; the one that started us ends us.
process.on('SIGINT', () => {});

async function run({ strategy, site, stockId, buyers, waitsInSale }: Open): Promise<void> {
  const shop = STRATEGIES[strategy](site);
  const freezePoint = new FreezePoint(waitsInSale, () => report('in the middle'));
  goOn = () => freezePoint.goOn();
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
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
  }
}

async function trySale(
  shop: Strategy,
  freezePoint: FreezePoint,
  stockId: number,
  buyer: string,
): Promise<SaleResult | 'refused'> {
  const visitor = freezePoint.visitor();
  const inTheMiddle = async () => {
    await sleep(1 + Math.random() * 2);
    await visitor.pass();
  };
  try {
    return await shop.sell({ stockId, buyer, inTheMiddle });
  } catch (error) {
    if (!shop.isRefusal(error)) throw error;
    report('refused', (error as Error).name);
    return 'refused';
  } finally {
    visitor.ended();
  }
}

function report(event: Report['event'], detail?: string): void {
  const message: Report = { type: 'report', event, ...(detail !== undefined && { detail }) };
  process.send?.(message);
}
