import { expect, test, vi } from 'vitest';
import { Poller } from '../../../src/addons/board/poller.js';
import type { BoardSource, Finding, Happening, ProcessWatcher } from '../../../src/addons/board/source.js';

// The clock of the package is captured at import.
vi.hoisted(() => vi.useFakeTimers());

// biome-ignore lint/suspicious/noExplicitAny: what is sent becomes JSON
type Sent = readonly [event: string, data: any];

/** A poller on a source that finds one key with one turn more at each look, and what it has sent. */
function started(interval: number, health: () => Promise<readonly Finding[]> = async () => []) {
  const sent: Sent[] = [];
  let turns = 0;
  let watcher: ProcessWatcher | undefined;
  const source: BoardSource = {
    look: async () => ({
      keys: [{ key: 'a', holder: 'h', expiresIn: 30_000, waiting: 0, turns: String(++turns) }],
    }),
    holderOf: async () => null,
    forceRelease: async () => false,
    history: async () => [],
    health,
    database: () => undefined,
    topology: () => [],
    process: {
      callers: () => new Map(),
      watch(given) {
        watcher = given;
        return () => {};
      },
    },
  };
  const poller = new Poller(source, interval, (event, data) => sent.push([event, data]));
  poller.start();
  const note = (happening: Partial<Happening> = {}) =>
    watcher?.happened({ type: 'lease-lost', bad: true, text: 'It was lost.', ...happening });
  const ofKind = (list: readonly Sent[], kind: string) =>
    list.filter(([event]) => event === kind).map(([, data]) => data);
  return {
    poller,
    note,
    sent: (kind: string) => ofKind(sent, kind),
    welcome: (kind = 'happened') => ofKind(poller.everything(), kind),
  };
}

test('turns are counted with the longest interval, too', async () => {
  const { poller, sent } = started(60_000);
  await vi.advanceTimersByTimeAsync(60_500);
  expect(sent('keys').map(({ keys }) => keys[0].bar[0])).toEqual([0, 1]);
  poller.stop();
});

test('viewers are told how much of the last minute was watched, which begins anew after a pause', async () => {
  const { poller, welcome } = started(1_000);
  const watched = () => welcome('status')[0].minute;
  expect(watched()).toEqual({ ms: 0, bars: 0 });
  await vi.advanceTimersByTimeAsync(10_500);
  expect(watched().ms).toBe(10_000);
  expect(watched().bars).toBeGreaterThanOrEqual(3);
  await vi.advanceTimersByTimeAsync(120_000);
  // The first of twelve bars is full, and the last one is not.
  expect(watched().bars).toBe(12);
  expect(watched().ms).toBeGreaterThan(55_000 - 1);
  expect(watched().ms).toBeLessThanOrEqual(60_000);
  poller.stop();
  poller.start();
  await vi.advanceTimersByTimeAsync(2_500);
  expect(watched().ms).toBe(2_000);
  poller.stop();
});

test('an event between two looks reaches a viewer that comes then once, and the total is of all', async () => {
  const { poller, note, sent, welcome } = started(1_000);
  await vi.advanceTimersByTimeAsync(100);
  for (let count = 0; count < 60; count++) note();
  const [first] = welcome();
  expect(first.lost).toBe(60);
  await vi.advanceTimersByTimeAsync(1_000);
  const [next] = sent('happened');
  expect(next).toMatchObject({ passedOver: 10, lost: 60 });
  expect(first.happened.length + next.happened.length).toBe(60);
  expect(welcome()[0].happened).toHaveLength(60);
  poller.stop();
});

test('timeouts, refused writes and lost leases are counted, and anew for who comes after a pause', async () => {
  const { poller, note, sent, welcome } = started(1_000);
  await vi.advanceTimersByTimeAsync(100);
  for (const type of ['timeout', 'timeout', 'stale-write', 'lease-lost', 'redis-back']) note({ type });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent('happened').at(-1)).toMatchObject({ timeouts: 2, refused: 1, lost: 1 });
  poller.stop();
  poller.start();
  expect(welcome()).toEqual([{ all: true, happened: [], passedOver: 0, timeouts: 0, refused: 0, lost: 0 }]);
  poller.stop();
});

test('who comes after a pause sees no key of before as if it were of now, and charts that have moved on', async () => {
  const { poller, sent, welcome } = started(1_000);
  await vi.advanceTimersByTimeAsync(3_500);
  const [before] = welcome('keys');
  const turns = (bars: readonly number[]) => bars.reduce((sum, count) => sum + count, 0);
  expect(turns(before.keys[0].turnBars)).toBe(3);
  poller.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  const looks = sent('keys').length;
  poller.start();
  expect(welcome('keys')).toEqual([]);
  expect(welcome('status')[0]).not.toHaveProperty('seenAt');
  await vi.advanceTimersByTimeAsync(100);
  const first = sent('keys')[looks];
  expect(first).toMatchObject({ all: true, bar: before.bar + 12 });
  // The turns of before are a minute to the left; nobody knows when those of the pause were.
  expect(turns(first.keys[0].turnBars)).toBe(3);
  expect(turns(first.keys[0].turnBars.slice(-12))).toBe(0);
  expect(welcome('keys')).toMatchObject([{ bar: first.bar, keys: [{ key: 'a', turnBars: first.keys[0].turnBars }] }]);
  expect(welcome('status')[0].seenAt).toBeGreaterThan(0);
  poller.stop();
});

test('a health check begins only after the one before has ended', async () => {
  let begun = 0;
  const { poller } = started(100, () => {
    begun++;
    return new Promise(() => {});
  });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(begun).toBe(1);
  // For a viewer that comes later it begins anew.
  poller.stop();
  poller.start();
  expect(begun).toBe(2);
  poller.stop();
});
