import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually } from '../test/support/eventually.js';
import { gate, type Shop } from '../test/support/shop.js';
import type { Worker } from '../test/support/worker.js';
import { Load } from './load.js';

/** One process of an application that sells by `POST /stock/:id/sell`. */
export interface Replica {
  readonly worker: Worker;
  readonly url: string;
}

/** Of each replica. */
const CONNECTIONS = 50;
const STOCK = 1_000_000;
/** Past the lease of the application; ms. */
const FROZEN_FOR = 6_000;
/** A machine that does other things, too. */
const SLOWLY = { within: 60_000 };

/**
 * Two replicas under load sell two products. Of the second one there is never enough. One replica is frozen past its lease,
 * then the other one is killed, and SIGTERM ends the first one while it is still under load. `start` is told the name that
 * the orders of the replica have, and the replica ends itself with code 1 if that takes longer than two seconds.
 */
export async function sellByTwoReplicas(shop: Shop, start: (name: string) => Promise<Replica>): Promise<void> {
  const plenty = (await shop.product(STOCK)).id;
  const scarce = (await shop.product(0)).id;
  const paths = [plenty, scarce].map((id) => `/stock/${id}/sell`);
  const [frozen, killed] = await Promise.all([start('frozen'), start('killed')]);
  const [first, second] = [frozen, killed].map(({ url }) => new Load(url, CONNECTIONS, { quantity: 1 }, paths)) as [
    Load,
    Load,
  ];
  const sells = (load: Load) => {
    const before = load.answers(200);
    return eventually('it sells', async () => load.answers(200) > before + 50, SLOWLY);
  };
  const supply = new Supply(shop, scarce);
  await Promise.all([first, second].map(sells));

  frozen.worker.freeze();
  await sleep(FROZEN_FOR);
  await sells(second);
  frozen.worker.thaw();
  await Promise.all([first, second].map(sells));

  await killed.worker.kill();
  await second.stop();
  await sells(first);
  const supplied = await supply.end();

  // Still under load.
  const began = performance.now();
  process.kill(frozen.worker.pid, 'SIGTERM');
  const { code } = await frozen.worker.exited;
  const took = Math.round(performance.now() - began);
  expect(code, frozen.worker.output).not.toBe(1);
  const leases = [plenty, scarce].map((id) => `fenced-lock:{stock:${id}}:lease`);
  expect(await shop.redis().exists(...leases)).toBe(0);
  await first.stop();

  const { rows } = await shop.admin.query<{ stockId: number; buyer: string; sold: number }>(
    'SELECT "stockId", buyer, sum(quantity)::int AS sold FROM "Order" WHERE "stockId" = ANY($1) GROUP BY 1, 2',
    [[plenty, scarce]],
  );
  const sold = (which: Partial<(typeof rows)[number]>) =>
    rows
      .filter((row) => Object.entries(which).every(([name, value]) => row[name as keyof typeof row] === value))
      .reduce((sum, row) => sum + row.sold, 0);
  const unknown = [first, second].map((load) => load.codes.get('COMMIT_UNKNOWN') ?? 0) as [number, number];
  console.log(
    [first, second].map((load) => `${show(load.statuses)}; codes ${show(load.codes)}`).join('\n'),
    `\n${sold({})} sold, ${first.answers(200) + second.answers(200)} answered with 200, ${unknown.join(' + ')} unknown; ended in ${took} ms`,
  );

  // What is left, and what was sold, is what was there.
  expect(STOCK - ((await shop.row(plenty))?.quantity as number)).toBe(sold({ stockId: plenty }));
  const left = (await shop.row(scarce))?.quantity as number;
  expect(supplied - left).toBe(sold({ stockId: scarce }));
  expect(left).toBeGreaterThanOrEqual(0);
  expect(first.answers(409)).toBeGreaterThan(0);
  // No two sales have left the same number behind.
  const numbers = [first, second]
    .flatMap((load) => load.results as { id: number; quantity: number }[])
    .filter(({ id }) => id === plenty)
    .map(({ quantity }) => quantity);
  expect(new Set(numbers).size).toBe(numbers.length);
  // Each sale was answered, but for those whose outcome nobody knows and those that the kill has cut off.
  between(sold({ buyer: 'frozen' }), first.answers(200), unknown[0]);
  between(sold({ buyer: 'killed' }), second.answers(200), unknown[1] + CONNECTIONS);
  // All others were turned away: what the frozen one had under way, what waited too long, what came at the end.
  const statuses = [first, second].flatMap((load) => [...load.statuses.keys()]);
  expect(statuses.filter((status) => ![200, 409, 500, 503].includes(status))).toEqual([]);
  expect(first.answers(500) + second.answers(500)).toBe(unknown[0] + unknown[1]);
}

function between(number: number, least: number, more: number): void {
  expect(number).toBeGreaterThanOrEqual(least);
  expect(number).toBeLessThanOrEqual(least + more);
}

function show(counts: ReadonlyMap<unknown, number>): string {
  return [...counts].map(([what, count]) => `${what || 'none'}: ${count}`).join(', ');
}

/** Brings some of a product now and then, under its lock, from a process of its own: this one. */
class Supply {
  readonly #over = gate();
  readonly #done: Promise<number>;

  constructor(shop: Shop, id: number) {
    this.#done = this.#bring(shop.client().prisma, id);
  }

  /** Resolves to how many there were altogether. */
  async end(): Promise<number> {
    this.#over.open();
    return await this.#done;
  }

  async #bring(prisma: ReturnType<Shop['client']>['prisma'], id: number): Promise<number> {
    let supplied = 0;
    let isOver = false;
    void this.#over.opened.then(() => {
      isOver = true;
    });
    while (!isOver) {
      await prisma.$withLock(
        `stock:${id}`,
        (tx) => tx.stock.update({ where: { id }, data: { quantity: { increment: 5 } } }),
        { waitTime: 60_000 },
      );
      supplied += 5;
      await Promise.race([this.#over.opened, sleep(100)]);
    }
    return supplied;
  }
}
