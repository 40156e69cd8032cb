import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import type { Board } from '../../../src/addons/board/index.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { startWorker, type Worker, type WorkerMessage } from '../../support/worker.js';
import type { Counted, Order } from './numbers.worker.js';
import { Viewer } from './viewer.js';

/** One process of the shop. */
class Process {
  readonly name: string;
  readonly worker: Worker;

  constructor(name: string, keyPrefix: string) {
    this.name = name;
    const args = [inject('postgres').app, inject('redis').url as string, keyPrefix, name];
    this.worker = startWorker(new URL('./numbers.worker.ts', import.meta.url), args);
  }

  /** Tells it what to do, and does not wait for the end of it. */
  order(order: Order): void {
    this.worker.send(order as never);
  }

  /** Resolves to what became of it: `code` if it failed. */
  async done<T extends object = { readonly code?: string }>(order: Order): Promise<T> {
    this.order(order);
    return (await this.worker.next<WorkerMessage>(order.type)) as never;
  }

  async count(keys: readonly string[]): Promise<Readonly<Record<string, Counted>>> {
    return (await this.done<{ counted: Record<string, Counted> }>({ type: 'count', keys })).counted;
  }
}

/** Sales of each process under each key. */
const TIMES = 8;

describeWithShop('at one moment of a workload with faults', () => {
  const shop = new Shop();

  /** A board that another process serves. */
  const served = (url: string): Board => {
    const ask = (request: Request) => fetch(new URL(new URL(request.url).pathname, url), { signal: request.signal });
    return Object.assign(ask, { close: () => {} });
  };

  test('the list and the board show the same, and the metrics of the processes add up to it', async () => {
    const keyPrefix = `same-${randomUUID()}:`;
    const observer = shop.client({ keyPrefix }).prisma;
    const processes = ['web-1', 'jobs-1'].map((name) => new Process(name, keyPrefix)) as [Process, Process];
    const [web, jobs] = processes;
    for (const { worker } of processes) shop.closeLater(() => worker.kill());
    const products = [await shop.product(1_000), await shop.product(1_000)] as const;
    const keys = products.map(({ key }) => key);
    const [busy, handled] = keys as [string, string];
    await Promise.all(processes.map(({ worker }) => worker.next('ready')));
    const { url } = await web.done<{ url: string }>({ type: 'board' });
    const viewer = await Viewer.look(served(url));

    // The workload: each process sells everything, has one write refused as stale, and gives up behind a lock.
    const sell = (each: Process) =>
      Promise.all(products.map(({ id, key }) => each.done({ type: 'sell', id, key, times: TIMES })));
    for (const sold of (await Promise.all(processes.map(sell))).flat()) expect(sold).not.toHaveProperty('code');
    const other = `${busy}:other`;
    for (const each of processes) {
      const late = { type: 'write-late', key: busy, other, id: products[0].id } as const;
      expect(await each.done(late)).toMatchObject({ code: 'STALE_TOKEN' });
      await using _held = await observer.$lock(busy);
      expect(await each.done({ type: 'give-up', key: busy })).toMatchObject({ code: 'LOCK_TIMEOUT' });
    }

    // The moment: each key has a holder that stays, and one has a crowd behind it.
    web.order({ type: 'hold', key: busy, leaseTime: 120_000 });
    await web.worker.next('inside');
    await jobs.done({ type: 'handle', key: handled });
    web.order({ type: 'queue', key: busy, callers: 2 });
    jobs.order({ type: 'queue', key: busy, callers: 3 });
    const listed = async () => new Map((await observer.$locks.list()).map((state) => [state.key, state]));
    await eventually('the crowd waits', async () => (await listed()).get(busy)?.waiting === 1);

    // Read all of it. Nothing moves: the list is the same before and after.
    const list = await listed();
    const seen = await viewer.until('the board shows that', () => {
      const found = keys.flatMap((key) => viewer.keys.get(key) ?? []);
      const isThat = found.every(({ key, holder, waiting }) => {
        return holder === list.get(key)?.holder && waiting === list.get(key)?.waiting;
      });
      return isThat && found.length === 2 && found[0]?.transaction && found;
    });
    const counts = [await web.count([...keys, other]), await jobs.count([...keys, other])] as const;
    const again = await listed();
    const numbers = (of: ReadonlyMap<string, unknown>) =>
      keys.map((key) => {
        const row = of.get(key) as ReturnType<(typeof list)['get']>;
        const { holder, process, waiting, waiters, turns, token, transaction } = row ?? {};
        return [holder, process, waiting, waiters, String(turns), String(token), transaction?.pid];
      });
    const board = new Map(seen.map((row) => [row.key, row]));
    expect(numbers(again)).toEqual(numbers(list));
    expect(numbers(board)).toEqual(numbers(list));
    expect(keys.map((key) => list.get(key)?.process)).toEqual(['web-1', 'jobs-1']);

    // The metrics are of one process each: who holds, who waits, and the turns that have committed.
    expect(counts.map((of) => keys.map((key) => [of[key]?.held, of[key]?.waiting]))).toEqual([
      [
        [1, 2],
        [0, 0],
      ],
      [
        [0, 3],
        [1, 0],
      ],
    ]);
    expect(seen.map(({ callers }) => callers)).toEqual([2, 0]);
    const committed = (key: string) => counts.reduce((sum, of) => sum + (of[key] as Counted).committed, 0);
    // The observer's two handles, and the one of `jobs`, each registered once.
    expect(keys.map((key) => Number(list.get(key)?.turns))).toEqual([committed(busy) + 2, committed(handled) + 1]);
    for (const [key, of] of counts.flatMap((each) => Object.entries(each))) {
      expect([key, of.leases]).toEqual([key, of.committed + of.rolledBack + of.notAdmitted + of.held]);
    }
    // What went wrong is known to its own process alone.
    const wrong = ({ timeouts, staleWrites, leasesLost }: Counted) => [timeouts, staleWrites, leasesLost];
    expect(counts.map((of) => wrong(of[busy] as Counted))).toEqual([
      [1, 1, 0],
      [1, 1, 0],
    ]);
    expect(viewer.happened).toMatchObject({ timeouts: 1, refused: 1, lost: 0 });
    viewer.leave();
  }, 120_000);
});
