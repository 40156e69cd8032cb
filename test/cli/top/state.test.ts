import { expect, test } from 'vitest';
import type { TopRow } from '../../../src/cli/top/sample.js';
import { type KeyPress, pressed, START, shown, type TopState } from '../../../src/cli/top/state.js';
import { screen } from '../../../src/cli/top/view.js';
import { HOSTILE, isHarmless } from '../operator.js';

const row = (key: string, more: Partial<TopRow> = {}): TopRow => ({
  key,
  holder: `holder-of-${key}`,
  holderId: `id-of-${key}`,
  leaseLeft: 12_340,
  waiting: 0,
  waiters: [],
  isInOrder: true,
  heat: 0,
  transaction: undefined,
  ...more,
});
const ROWS = [
  row('order:1', { heat: 3, waiting: 1, waiters: ['web-9'], transaction: { pid: 1, state: 'active', age: 20 } }),
  row('stock:1', { heat: 9, transaction: { pid: 2, state: 'idle in transaction', age: 900 } }),
  row('stock:2', { heat: undefined, waiting: 4, waiters: ['web-1', null, 'worker 3', 'web-4'] }),
];
const ASKED = ['PostgreSQL db:5432/shop', 'Redis cache:6379'];
const AROUND = { isOld: false, trouble: '', asked: ASKED.map((address) => ({ address })) };
const named = (name: string): KeyPress => ({ name, sequence: name });
const text = (sequence: string): KeyPress => ({ name: undefined, sequence });

/** What comes of pressing these, one after the other. */
function after(presses: readonly KeyPress[], state: TopState = START, rows: readonly TopRow[] = ROWS) {
  let result: ReturnType<typeof pressed> = { state };
  for (const press of presses) result = pressed(result.state, rows, press);
  return result;
}
const keys = (state: TopState) => shown(ROWS, state).map(({ key }) => key);

test('s goes on to the next order: heat, who waits, age of the transaction, key', () => {
  const orders = [0, 1, 2, 3, 4].map((times) => keys(after(Array(times).fill(named('s'))).state));
  expect(orders).toEqual([
    ['stock:1', 'order:1', 'stock:2'],
    ['stock:2', 'order:1', 'stock:1'],
    ['stock:1', 'order:1', 'stock:2'],
    ['order:1', 'stock:1', 'stock:2'],
    ['stock:1', 'order:1', 'stock:2'],
  ]);
});

test('/ filters by a part of the key, letters of commands included; Escape shows all again', () => {
  const presses = [text('/'), ...'sq:'].map((each) => (typeof each === 'string' ? named(each) : each));
  const typing = after([...presses, named('backspace'), named('backspace'), text('t'), named('return')]);
  expect(typing.action).toBeUndefined();
  expect(typing.state).toMatchObject({ mode: 'list', filter: 'st' });
  expect(keys(typing.state)).toEqual(['stock:1', 'stock:2']);
  expect(keys(after([named('escape')], typing.state).state)).toHaveLength(3);
});

test('a key is released only if it is selected and the answer is y, and it is the one that was asked about', () => {
  expect(after([named('x'), named('y')]).action).toBeUndefined();
  const asked = after([named('down'), named('x')]);
  expect(asked).toMatchObject({ state: { mode: 'confirm', selected: 'stock:1', asked: { key: 'stock:1' } } });
  expect(asked.action).toBeUndefined();
  for (const no of ['n', 'return', 'escape', 'q', 'x', ' ', 'down']) {
    const answered = pressed(asked.state, ROWS, { name: no, sequence: no });
    expect(answered).toMatchObject({ state: { mode: 'list', message: 'Nothing was changed.' } });
    expect(answered.action).toBeUndefined();
  }
  // The rows have changed places meanwhile, and the key its holder.
  const later = [row('stock:1', { holder: 'web-2', holderId: 'id-of-web-2' }), ...ROWS.slice(0, 1)];
  const release = { type: 'release', key: 'stock:1', holderId: 'id-of-stock:1' };
  expect(pressed(asked.state, later, named('y')).action).toEqual(release);
  const { width, height } = { width: 200, height: 12 };
  const lines = screen({ rows: later, refused: undefined }, asked.state, { width, height, at: new Date(0), ...AROUND });
  expect(lines.at(-1)?.text).toMatch(/^Take stock:1 from holder-of-stock:1\? /);
});

test('the selection goes up and down, stops at both ends, and stays with its key', () => {
  const down = (times: number) => after(Array(times).fill(named('down'))).state.selected;
  expect([1, 2, 3, 4].map(down)).toEqual(['stock:1', 'order:1', 'stock:2', 'stock:2']);
  expect(after([named('up')]).state.selected).toBe('stock:2');
  expect(after([named('down'), named('s')]).state.selected).toBe('stock:1');
});

test.each([
  [{ name: 'c', ctrl: true }, {}],
  [{ name: 'q', sequence: 'q' }, {}],
  [{ name: 'c', ctrl: true }, { mode: 'filter' as const }],
  [
    { name: 'c', ctrl: true },
    { mode: 'confirm' as const, selected: 'stock:1', asked: row('stock:1') },
  ],
])('%o leaves', (press, more) => {
  expect(pressed({ ...START, ...more }, ROWS, press).action).toEqual({ type: 'quit' });
});

test.each([
  [80, 24],
  [20, 5],
  [300, 100],
])('the screen has the size of the terminal: %i by %i', (width, height) => {
  const many = Array.from({ length: 200 }, (_, at) => row(`stock:${at}`));
  const state = { ...START, sort: 'key' as const, selected: 'stock:77' };
  const lines = screen({ rows: many, refused: undefined }, state, { width, height, at: new Date(0), ...AROUND });
  expect(lines).toHaveLength(height);
  for (const { text } of lines) expect(text.length).toBeLessThanOrEqual(width);
  // What is selected is there, wherever it is in the list.
  expect(lines.filter(({ emphasis }) => emphasis === 'inverse').map(({ text }) => text.split(' ')[0])).toEqual([
    'stock:77',
  ]);
});

test('a row says how hot the key is, how many wait, the lease, the transaction, the holder and who is next', () => {
  const lines = screen({ rows: ROWS, refused: undefined }, START, {
    width: 120,
    height: 8,
    at: new Date(0),
    ...AROUND,
  }).map(({ text }) => text.split(/ {2,}/));
  expect(lines[0]).toEqual(['00:00:00Z', '3 held', '5 waiting', '12.0 turns/s', '? refused', 'sort heat']);
  expect(lines[2]).toEqual(['stock:1', '9.0', '0', '12.3 s', '0.9 s idle in transaction', 'holder-of-stock:1', '-']);
  expect(lines[4]).toEqual(['stock:2', '-', '4', '12.3 s', '-', 'holder-of-stock:2', 'web-1']);
});

test('those who wait for the selected key are named in their order, as far as there is room, and all are counted', () => {
  const last = (width: number, rows = ROWS, selected = 'stock:2') =>
    screen({ rows, refused: undefined }, { ...START, selected }, { width, height: 20, at: new Date(0), ...AROUND })
      .map(({ text }) => text)
      .slice(3 + rows.length, -1)
      .filter((text) => !['', ...ASKED, ASKED.join('   ')].includes(text));
  expect(last(100)).toEqual(['Waiting for stock:2, in order: 1 web-1, 2 ?, 3 "worker 3", 4 web-4']);
  expect(last(100, ROWS, 'stock:1')).toEqual([]);
  const unordered = [row('stock:2', { waiting: 2, waiters: ['web-1', 'web-2'], isInOrder: false })];
  expect(last(100, unordered)).toEqual(['Waiting for stock:2, in no order: web-1, web-2']);
  const waiters = Array.from({ length: 100 }, (_, at) => `web-${at + 1}`);
  const crowd = last(40, [row('stock:2', { waiting: 120, waiters })]);
  expect(crowd).toHaveLength(3);
  for (const line of crowd) expect(line.length).toBeLessThanOrEqual(40);
  const named = [...crowd.join(' ').matchAll(/(\d+) web-(\d+)\b/g)].map(([, place, name]) => [place, name]);
  expect(named.length).toBeGreaterThan(4);
  expect(named).toEqual(named.map((_, at) => [String(at + 1), String(at + 1)]));
  expect(crowd.at(-1)).toContain(`, ${120 - named.length} more`);
});

test('the last refused writes stand above the servers, the newest first, and are counted in the first line', () => {
  const refusal = (at: number) => {
    const known = { token: '5', text: `It was refused at ${at}.`, own: false };
    return { ...known, id: String(at), at, key: 'stock:1', process: at === 4 ? null : 'worker 7' };
  };
  const refused = { last: [1, 2, 3, 4].map(refusal) };
  const lines = screen({ rows: ROWS, refused }, START, { width: 120, height: 20, at: new Date(0), ...AROUND });
  expect(lines[0]?.text).toContain('   4 refused   ');
  expect(lines.slice(-5, -2).map(({ text }) => text)).toEqual([
    'Refused 00:00:00Z stock:1 by ?: It was refused at 4.',
    'Refused 00:00:00Z stock:1 by "worker 7": It was refused at 3.',
    'Refused 00:00:00Z stock:1 by "worker 7": It was refused at 2.',
  ]);
  // A low screen is for the keys.
  const low = screen({ rows: ROWS, refused }, START, { width: 120, height: 8, at: new Date(0), ...AROUND });
  expect(low.some(({ text }) => text.startsWith('Refused'))).toBe(false);
});

test.each([
  ['on one line', 80, [ASKED.join('   ')]],
  ['on a line each, where the terminal is narrow', 30, ASKED],
])('the servers stand directly above the question whether to take a key: %s', (_, width, servers) => {
  const state = { ...START, mode: 'confirm' as const, selected: 'stock:77', asked: row('stock:77') };
  const many = Array.from({ length: 200 }, (_, at) => row(`stock:${at}`));
  const lines = screen({ rows: many, refused: undefined }, state, {
    width,
    height: 12,
    at: new Date(0),
    ...AROUND,
  }).map(({ text }) => text);
  expect(lines).toHaveLength(12);
  const question = lines.findIndex((text) => text.startsWith('Take stock:77 from'));
  expect(lines.slice(question - servers.length, question)).toEqual(servers);
  expect(lines.at(-1)).toMatch(/\[y\/N\]$/);
});

test.each(HOSTILE)('a key with %s is shown as text, in each part of the screen', (_, key) => {
  for (const mode of ['list', 'filter', 'confirm'] as const) {
    const rows = [row(key, { holder: key, waiting: 1, waiters: [key] })];
    const asked = mode === 'confirm' ? rows[0] : undefined;
    const state = { ...START, mode, selected: key, filter: key, asked };
    const size = { width: 900, height: 16, at: new Date(0), ...AROUND };
    const refusal = { id: 'a', at: 0, key, token: key, text: `A row of ${key}.`, process: key, own: false };
    const refused = { last: [refusal] };
    for (const { text } of screen({ rows, refused }, state, size)) {
      expect(isHarmless(text)).toBe(true);
    }
  }
});

test('a filter is for the refused writes, too, and a key that is offered has no holder yet', () => {
  const write = (key: string) => ({ id: key, at: 0, key, token: '1', text: 'no', process: 'web-1', own: false });
  const refused = { last: [write('order:1'), write('stock:1')] };
  const rows = [row('stock:1', { holder: 'next', isOffered: true })];
  const size = { width: 200, height: 16, at: new Date(0), ...AROUND };
  const linesOf = (state: TopState) => screen({ rows, refused }, state, size).map(({ text }) => text);
  const lines = linesOf({ ...START, filter: 'stock' });
  expect(lines.filter((line) => line.startsWith('Refused'))).toEqual([expect.stringMatching(/ stock:1 by web-1/)]);
  expect(lines[0]).toContain('2 refused');
  expect(lines[2]).toMatch(/ passing on +-$/);
  const confirming = linesOf({ ...START, mode: 'confirm', selected: 'stock:1', asked: rows[0] });
  expect(confirming.at(-1)).toMatch(/^Take stock:1\? /);
});

test('the question whether to take a key says where the URLs were found, if that is known', () => {
  const asked = [
    { address: 'PostgreSQL db:5432/shop', from: 'the Prisma config' },
    { address: 'Redis cache:6379', from: '--redis-url' },
  ];
  const text = (mode: 'list' | 'confirm') =>
    screen(
      { rows: ROWS, refused: undefined },
      { ...START, mode, selected: 'stock:1', asked: mode === 'confirm' ? row('stock:1') : undefined },
      { width: 120, height: 20, at: new Date(0), ...AROUND, asked },
    ).map(({ text }) => text);
  expect(text('confirm')).toContain(
    'PostgreSQL db:5432/shop (from the Prisma config)   Redis cache:6379 (from --redis-url)',
  );
  expect(text('list')).toContain('PostgreSQL db:5432/shop   Redis cache:6379');
});

test('a message has as many lines as it needs, and no more than a third of the screen', () => {
  const lines = (message: string) =>
    screen(
      { rows: ROWS, refused: undefined },
      { ...START, message },
      { width: 40, height: 12, at: new Date(0), ...AROUND },
    ).map(({ text }) => text);
  const words = (count: number) => Array.from({ length: count }, (_, at) => `word-${at}`).join(' ');
  const fits = lines(words(19));
  expect(fits).toHaveLength(12);
  expect(fits.slice(-4).join(' ')).toBe(words(19));
  expect(fits.at(-5)).toBe(ASKED.at(-1));
  const long = lines(words(100));
  expect(long.slice(-4).join(' ')).toMatch(/^word-0 .* word-\d* ?\.\.\.$/);
  expect(long.at(-5)).toBe(ASKED.at(-1));
  expect(long[2]).toMatch(/^stock:/);
});
