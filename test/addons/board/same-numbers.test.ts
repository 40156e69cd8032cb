import { randomUUID } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { createBoard } from '../../../src/addons/board/index.js';
import { instrumentFencedLock } from '../../../src/addons/otel/index.js';
import { eventually } from '../../support/eventually.js';
import { refusedWrite } from '../../support/refused-write.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';
import { Metrics } from '../otel/recorded-metrics.js';
import { Viewer } from './viewer.js';

describeWithShop('at one moment of a workload with faults', () => {
  const shop = new Shop();
  const metrics = new Metrics();
  // A key is its own group: each is counted alone.
  afterAll(instrumentFencedLock({ tracer: false, meter: metrics.meter, group: (key) => key }));

  test('the list and the board show the same, and the metrics add up to it', async () => {
    const keyPrefix = `same-${randomUUID()}:`;
    const client = (name: string) => shop.client({ keyPrefix, name }).prisma;
    const [web, jobs] = [client('web-1'), client('jobs-1')];
    const { id, key } = await shop.product(1_000);
    const handled = `${key}:handled`;
    const viewer = await Viewer.look(createBoard(web, { refreshInterval: 100 }));

    // The workload: sales, one write that is refused as stale, one call that gives up, one that rolls back.
    const sale = (prisma: typeof web) =>
      prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    await Promise.all(Array.from({ length: 8 }, (_, index) => sale(index % 2 ? web : jobs)));
    await refusedWrite(web, jobs, id, key);
    await jobs.$withLock(handled, () => Promise.reject(new Error('no sale'))).catch(() => {});
    const held = await web.$lock(key);
    await jobs.$withLock(key, () => {}, { waitTime: 20 }).catch(() => {});
    await held.release();

    // The moment: each key has a holder that stays, and one has a crowd behind it.
    await using _handle = await jobs.$lock(handled, { leaseTime: 120_000 });
    const [inside, goOn] = [gate(), gate()];
    const holding = web.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const crowd = [web, web, jobs, jobs, jobs].map((prisma) => prisma.$withLock(key, () => {}));
    const listed = async () => new Map((await web.$locks.list()).map((state) => [state.key, state]));
    await eventually('the crowd waits', async () => (await listed()).get(key)?.waiting === 1);

    // Nothing moves: the list is the same before and after.
    const list = await listed();
    const keys = [key, handled];
    await viewer.until('the board shows that', () => {
      const [first, second] = keys.map((each) => viewer.keys.get(each));
      return first?.transaction && first.waiting === 1 && first.callers === 2 && second?.holder;
    });
    const numbers = (of: ReadonlyMap<string, object>) =>
      keys.map((each) => {
        const { holder, process, waiting, waiters, turns, token, transaction } = of.get(each) as Shown;
        return [holder, process, waiting, waiters, String(turns), String(token), transaction?.pid];
      });
    expect(numbers(await listed())).toEqual(numbers(list));
    expect(numbers(viewer.keys)).toEqual(numbers(list));
    expect(keys.map((each) => list.get(each)?.process)).toEqual(['web-1', 'jobs-1']);

    const sum = (name: string, of: string, more = {}) =>
      metrics.sum(`fenced_lock.${name}`, { 'fenced_lock.group': of, ...more });
    const ended = (of: string, outcome: string) => sum('hold.duration', of, { 'fenced_lock.outcome': outcome });
    for (const each of keys) {
      expect([each, await sum('keys.held', each)]).toEqual([each, 1]);
      const leases = (await ended(each, 'committed')) + (await ended(each, 'rolled-back')) + 1;
      expect([each, await sum('turns', each)]).toEqual([each, leases]);
    }
    expect(await sum('callers.waiting', key)).toBe(5);
    // A handle that is open is registered already.
    const turns = keys.map((each) => Number(list.get(each)?.turns));
    expect(turns).toEqual([await ended(key, 'committed'), (await ended(handled, 'committed')) + 1]);
    expect(viewer.status?.happened).toMatchObject({
      timeouts: await sum('timeouts', key),
      refused: await sum('stale_writes', key),
      lost: 0,
    });
    expect([await sum('timeouts', key), await sum('stale_writes', key)]).toEqual([1, 1]);
    goOn.open();
    await Promise.all([holding, ...crowd]);
    viewer.leave();
  });
});

interface Shown {
  readonly [name: string]: unknown;
  readonly transaction?: { readonly pid: number };
}
