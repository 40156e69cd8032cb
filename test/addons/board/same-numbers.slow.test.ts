import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import type { Board } from '../../../src/addons/board/index.js';
import { Operator } from '../../cli/operator.js';
import { eventually } from '../../support/eventually.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';
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

  async inside(key: string, leaseTime: number): Promise<void> {
    this.order({ type: 'hold', key, leaseTime });
    await this.worker.next('inside');
  }

  async count(keys: readonly string[]): Promise<Readonly<Record<string, Counted>>> {
    return (await this.done<{ counted: Record<string, Counted> }>({ type: 'count', keys })).counted;
  }
}

/** Longer than the test. */
const LONG = 120_000;
const SHORT = 1_000;
/** Sales of each process under each key. */
const TIMES = 8;

describeWithShop('at one moment of a workload with faults', () => {
  const shop = new Shop();

  /** A board that another process serves. */
  const served = (url: string) =>
    Object.assign(
      (request: Request) => fetch(new URL(new URL(request.url).pathname, url), { signal: request.signal }),
      {
        close: () => {},
      },
    ) as Board;

  /** `$locks.list()`, by key. */
  const listed = async (client: ShopClient) => new Map((await client.$locks.list()).map((state) => [state.key, state]));

  test('the list and the board show the same, and the metrics of the processes add up to it', async () => {
    const keyPrefix = `same-${randomUUID()}:`;
    const observer = new Operator(shop, keyPrefix).client();
    const processes = ['web-1', 'web-2', 'jobs-1', 'jobs-2'].map((name) => new Process(name, keyPrefix));
    const [web1, web2, jobs1, jobs2] = processes as [Process, Process, Process, Process];
    for (const { worker } of processes) shop.closeLater(() => worker.kill());
    const products = await Promise.all([1_000, 1_000, 1_000, 1_000].map((quantity) => shop.product(quantity)));
    const keys = products.map(({ key }) => key);
    const [busy, handled, frozen, dead] = keys as [string, string, string, string];
    const late = products[0] as { id: number; key: string };
    await Promise.all(processes.map(({ worker }) => worker.next('ready')));
    const { url } = await web1.done<{ url: string }>({ type: 'board' });
    const viewer = await Viewer.look(served(url));

    // The workload: every process sells everything. One of them is frozen past its lease in the middle of its turn.
    const sell = (each: Process) =>
      Promise.all(products.map(({ id, key }) => each.done({ type: 'sell', id, key, times: TIMES })));
    const interrupted = sell(jobs1);
    await jobs1.inside(frozen, SHORT);
    jobs1.worker.freeze();
    for (const sold of (await Promise.all([web1, web2, jobs2].map(sell))).flat())
      expect(sold).not.toHaveProperty('code');
    jobs1.worker.thaw();
    expect(await jobs1.worker.next('hold')).toMatchObject({ code: 'LOCK_LOST' });
    await interrupted;
    // Stale writes, and a process that loses its lease to an operator.
    const writes = { type: 'write-late', key: busy, other: `${busy}:other`, id: late.id } as const;
    // In the process that serves the board, and twice in others.
    for (const each of [web1, web2, jobs1]) expect(await each.done(writes)).toMatchObject({ code: 'STALE_TOKEN' });
    await web1.inside(handled, SHORT);
    expect(await observer.$locks.forceRelease(handled)).toBe(true);
    expect(await web1.worker.next('hold')).toMatchObject({ code: 'TRANSACTION_ABORTED' });
    // A holder that is killed: its lease runs on, and a caller gives up behind it.
    await jobs2.inside(dead, LONG);
    await jobs2.worker.kill();
    for (const each of [web1, web1, web2]) {
      expect(await each.done({ type: 'give-up', key: dead })).toMatchObject({ code: 'LOCK_TIMEOUT' });
    }

    // The moment: each key has a holder that stays, one of them frozen, and a crowd behind it.
    await web1.inside(busy, LONG);
    await web2.done({ type: 'handle', key: handled });
    await jobs1.inside(frozen, LONG);
    web1.order({ type: 'queue', key: busy, callers: 2 });
    web2.order({ type: 'queue', key: busy, callers: 3 });
    jobs1.order({ type: 'queue', key: busy, callers: 1 });
    web1.order({ type: 'queue', key: frozen, callers: 2 });
    web2.order({ type: 'queue', key: frozen, callers: 1 });
    web2.order({ type: 'queue', key: dead, callers: 4 });
    const crowd = { [busy]: 2, [handled]: 0, [frozen]: 2, [dead]: 1 };
    const stands = async () => {
      const states = await listed(observer);
      return keys.every((key) => states.get(key)?.waiting === crowd[key]);
    };
    await eventually('the crowd waits', stands);
    const ofJobs1 = await jobs1.count(keys);
    jobs1.worker.freeze();

    // Read all of it. Nothing moves: the list is the same before and after.
    const list = await listed(observer);
    const board = new Map(
      await viewer.until('the board shows that', () => {
        const seen = keys.map((key) => [key, viewer.keys.get(key)] as const);
        const isThat = seen.every(
          ([key, row]) => row?.holder === list.get(key)?.holder && row?.waiting === list.get(key)?.waiting,
        );
        return isThat && viewer.keys.get(busy)?.transaction && seen;
      }),
    );
    const [ofWeb1, ofWeb2] = await Promise.all([web1.count(keys), web2.count(keys)]);
    const again = await listed(observer);

    // All processes: keys held, holders, processes that wait, tokens, turns, transactions.
    const shown = (of: ReadonlyMap<string, object | undefined>, pick: (row: never) => unknown) =>
      keys.map((key) => pick(of.get(key) as never));
    type Row = {
      holder?: string | null;
      process?: string | null;
      waiting: number;
      turns: bigint | string;
      token?: bigint | string | null;
      transaction?: { pid: number } | null;
    };
    const all = (row: Row) => [
      row.holder,
      row.process,
      row.waiting,
      String(row.turns),
      String(row.token),
      row.transaction?.pid,
    ];
    expect(shown(again, all)).toEqual(shown(list, all));
    expect(shown(board, all)).toEqual(shown(list, all));
    expect(shown(list, ({ process }: Row) => process)).toEqual(['web-1', 'web-2', 'jobs-1', 'jobs-2']);

    // The metrics are of one process each. The one that is dead takes its own with it.
    const counts = [ofWeb1, ofWeb2, ofJobs1];
    const names = ['web-1', 'web-2', 'jobs-1'];
    for (const key of keys) {
      const holder = list.get(key)?.process;
      const each = counts.map((of) => of[key] as Counted);
      expect([key, each.map(({ held }) => held)]).toEqual([key, names.map((name) => (name === holder ? 1 : 0))]);
      // Those of the holder's process wait there, and not in Redis.
      const waits = each.filter(({ waiting }, at) => waiting > 0 && names[at] !== holder);
      expect([key, waits.length]).toEqual([key, list.get(key)?.waiting]);
    }
    expect(counts.map((of) => keys.map((key) => of[key]?.waiting))).toEqual([
      [2, 0, 2, 0],
      [3, 0, 1, 4],
      [1, 0, 0, 0],
    ]);
    // The board knows the callers of its own process.
    expect(shown(board, ({ callers }: { callers: number }) => callers)).toEqual(
      keys.map((key) => ofWeb1[key]?.waiting),
    );

    // Turns are what has committed: the sales of the living and of the dead, one registration of the handle, one of the operator.
    const committed = keys.map((key) => counts.reduce((sum, of) => sum + (of[key] as Counted).committed, 0));
    expect(shown(list, ({ turns }: Row) => Number(turns))).toEqual([
      (committed[0] as number) + TIMES,
      (committed[1] as number) + TIMES + 2,
      (committed[2] as number) + TIMES,
      (committed[3] as number) + TIMES,
    ]);
    // Each lease has led to a turn that committed, to one that did not, or is still held.
    for (const of of counts) {
      for (const [key, { leases, committed, rolledBack, notAdmitted, held }] of Object.entries(of)) {
        expect([key, leases]).toEqual([key, committed + rolledBack + notAdmitted + held]);
      }
    }
    // One was refused as stale, and one was ended by the operator.
    expect(keys.map((key) => ofWeb1[key]?.rolledBack)).toEqual([1, 1, 0, 0]);
    // Who waits, by name: the same in all of them.
    const waiters = (row: { waiters: readonly (string | null | undefined)[] }) => row.waiters;
    expect(shown(board, waiters)).toEqual(shown(list, waiters));
    expect(shown(list, (row: never) => waiters(row).toSorted())).toEqual([
      ['jobs-1', 'web-2'],
      [],
      ['web-1', 'web-2'],
      ['web-2'],
    ]);
    expect(ofJobs1[frozen]?.rolledBack).toBeGreaterThanOrEqual(1);

    // What went wrong: timeouts, refused writes and lost leases are known to their own process alone.
    const ofProcess = (of: typeof ofWeb1, what: keyof Counted) =>
      keys.concat(`${busy}:other`).reduce((sum, key) => sum + (of[key]?.[what] ?? 0), 0);
    const wrong = (of: typeof ofWeb1) => ({
      timeouts: ofProcess(of, 'timeouts'),
      refused: ofProcess(of, 'staleWrites'),
      lost: ofProcess(of, 'leasesLost'),
    });
    const told = viewer.told.filter(({ event }) => event === 'happened').at(-1)?.data;
    expect(wrong(ofWeb1)).toEqual({ timeouts: 2, refused: 1, lost: 0 });
    expect(told).toMatchObject(wrong(ofWeb1));
    expect(wrong(ofWeb2)).toEqual({ timeouts: 1, refused: 1, lost: 0 });
    expect(wrong(ofJobs1).lost).toBeGreaterThanOrEqual(1);
    expect(wrong(ofJobs1).refused).toBe(1);
    viewer.leave();
  }, 120_000);
});
