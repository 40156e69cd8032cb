import { channel } from 'node:diagnostics_channel';
import { expect, test, vi } from 'vitest';
import { Keys } from '../../../src/addons/board/keys.js';
import { Poller } from '../../../src/addons/board/poller.js';
import type { BoardSource } from '../../../src/addons/board/source.js';

// The clock of the package is captured at import. What takes minutes passes in a moment.
vi.hoisted(() => vi.useFakeTimers());

/** Rounds of looks at a key that has one turn more at each look. */
function board(interval: number) {
  let turns = 0n;
  const source = {
    look: async () => [{ key: 'a', holder: 'h', expiresIn: 30_000, waiting: 0, waiters: [], turns: ++turns }],
    health: async () => ({ redis: [] }),
    callers: () => new Map(),
  } as unknown as BoardSource;
  const keys = new Keys();
  return () => {
    const poller = new Poller(source, keys, { interval, token: undefined }, () => {});
    // biome-ignore lint/suspicious/noExplicitAny: what is sent becomes JSON
    const welcome = (kind: string): any => poller.everything().find(([event]) => event === kind)?.[1];
    return { poller, welcome, bars: (): number[] => welcome('keys').keys[0].bars };
  };
}
const sum = (bars: readonly number[]) => bars.reduce((all, turns) => all + turns, 0);

test('turns are counted with the longest interval, too, and leave the chart after five minutes', async () => {
  const { poller, bars } = board(60_000)();
  await vi.advanceTimersByTimeAsync(60_500);
  expect(sum(bars())).toBe(1);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(sum(bars())).toBe(5);
  poller.stop();
});

test('who comes after a pause sees no key and no event of before as if it were of now, and charts that have moved on', async () => {
  const start = board(1_000);
  const before = start();
  channel('fenced-lock:lease-lost').publish({ error: new Error('it was lost.') });
  await vi.advanceTimersByTimeAsync(3_500);
  expect([sum(before.bars()), before.welcome('status').happened.lost]).toEqual([3, 1]);
  before.poller.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  const { poller, welcome, bars } = start();
  expect([welcome('keys'), welcome('status').seenAt, welcome('status').happened.lost]).toEqual([
    undefined,
    undefined,
    0,
  ]);
  await vi.advanceTimersByTimeAsync(100);
  // The turns of before are a minute to the left; nobody knows when those of the pause were.
  expect([sum(bars()), sum(bars().slice(-12))]).toEqual([3, 0]);
  poller.stop();
});
