import { expect, test, vi } from 'vitest';
import { Poller } from '../../../src/addons/board/poller.js';
import type { BoardSource, ProcessWatcher } from '../../../src/addons/board/source.js';

// The clock of the package is captured at import. What takes minutes passes in a moment.
vi.hoisted(() => vi.useFakeTimers());

/** A poller on a source that finds one key with one turn more at each look. */
function started(interval: number) {
  let turns = 0;
  let watcher: ProcessWatcher | undefined;
  const source: BoardSource = {
    look: async () => ({
      keys: [{ key: 'a', holder: 'h', expiresIn: 30_000, waiting: 0, turns: String(++turns) }],
    }),
    holderOf: async () => null,
    forceRelease: async () => false,
    history: async () => [],
    health: async () => ({ findings: [] }),
    topology: () => [],
    process: {
      callers: () => new Map(),
      watch(given) {
        watcher = given;
        return () => {};
      },
    },
  };
  const poller = new Poller(source, interval, () => {});
  poller.start();
  // biome-ignore lint/suspicious/noExplicitAny: what is sent becomes JSON
  const welcome = (kind: string): any => poller.everything().find(([event]) => event === kind)?.[1];
  const bars = (): number[] => welcome('keys').keys[0].bars;
  const note = (type: string) => watcher?.note({ type, bad: true, text: 'It was.' });
  return { poller, welcome, bars, note };
}
const sum = (bars: readonly number[]) => bars.reduce((all, turns) => all + turns, 0);

test('turns are counted with the longest interval, too, and leave the chart after five minutes', async () => {
  const { poller, bars } = started(60_000);
  await vi.advanceTimersByTimeAsync(60_500);
  expect(sum(bars())).toBe(1);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(sum(bars())).toBe(5);
  poller.stop();
});

test('who comes after a pause sees no key of before as if it were of now, and charts that have moved on', async () => {
  const { poller, welcome, bars } = started(1_000);
  await vi.advanceTimersByTimeAsync(3_500);
  expect(sum(bars())).toBe(3);
  poller.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  poller.start();
  expect([welcome('keys'), welcome('status').seenAt]).toEqual([undefined, undefined]);
  await vi.advanceTimersByTimeAsync(100);
  // The turns of before are a minute to the left; nobody knows when those of the pause were.
  expect([sum(bars()), sum(bars().slice(-12))]).toEqual([3, 0]);
  poller.stop();
});

test('timeouts, refused writes and lost leases are counted, and anew for who comes after a pause', async () => {
  const { poller, note, welcome } = started(1_000);
  for (const type of ['timeout', 'timeout', 'stale-write', 'lease-lost', ...Array(20).fill('redis-down')]) note(type);
  expect(welcome('happened')).toMatchObject({ timeouts: 2, refused: 1, lost: 1 });
  expect(welcome('happened').happened).toHaveLength(10);
  poller.stop();
  poller.start();
  expect(welcome('happened')).toMatchObject({ happened: [], timeouts: 0, refused: 0, lost: 0 });
  poller.stop();
});
