import { beforeEach, expect, test } from 'vitest';
import { BLANKS } from '../../cli/operator.js';

// The page's own modules, which are compiled for a browser.
const ofPage = (file: string) => import(new URL(`../../../src/addons/board/page/${file}`, import.meta.url).href);
const { question, State } = await ofPage('state.ts');
const { shownText } = await ofPage('text.ts');

const SEEN = new Date(2026, 0, 2, 2, 54, 56).getTime();
const KEYS = { all: true, keys: [], gone: [] };
const status = (more: object = {}) => ({ seenAt: SEEN, redis: [], ...more });
const TROUBLE = { trouble: 'no answer for 3 s' };

// biome-ignore lint/suspicious/noExplicitAny: see above
let state: any;
beforeEach(() => {
  state = new State();
  state.isConnected = true;
  state.apply('keys', KEYS);
  state.apply('status', status());
});
const says = (isPaused = false) => state.link(isPaused)[1];

test('the page says that it is live only while the keys can be read, and else as of when they are', () => {
  expect([says(), state.isOld]).toEqual(['Live', false]);
  state.apply('status', status(TROUBLE));
  expect([says(), state.isOld]).toEqual(['Connected, but the data is old: as of 02:54:56', true]);
  state.isConnected = false;
  expect(says(true)).toMatch(/not answer.* as of 02:54:56\.$/);
  // Its server is back, and has not looked yet.
  state.isConnected = true;
  state.apply('status', status({ seenAt: undefined }));
  expect(says()).toBe('Connected, but the data is old: as of 02:54:56');
  state.apply('status', status({ seenAt: SEEN + 9_000 }));
  expect([says(), state.isOld]).toEqual(['Live', false]);
});

test('a page without keys says that it connects, and then that they cannot be read', () => {
  state = new State();
  expect(says()).toBe('Connecting …');
  state.isConnected = true;
  state.apply('status', status({ seenAt: undefined, ...TROUBLE }));
  expect([says(), state.isOld]).toEqual(['Connected, but the keys cannot be read', false]);
});

const HELD = { holder: 'h', transaction: undefined };
const OPEN = { transaction: { pid: 4711 } };
test.each([
  [
    'whose transaction is open',
    { ...HELD, ...OPEN },
    /^Take this key from h\?.*Its open transaction .*4711.* is ended and/s,
  ],
  [
    'without a transaction in this database',
    HELD,
    /No transaction of it is open in this database; .*it goes on there\./,
  ],
  ['that nobody has a lease of', OPEN, /^Take this key from what keeps it without a lease\?(?!.*that holder)/s],
])('before a force release of a key %s, the page says what it does', (_, key, said) => {
  expect(question(state, key)).toMatch(said);
  state.apply('status', status(TROUBLE));
  expect(question(state, key)).toMatch(/\n\nThis is as of 02:54:56, and may be different by now\. /);
});

test.each(BLANKS)('a name with a letter that looks like nothing is told from the one without: admin%j', (blank) => {
  const code = blank.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
  expect(shownText(`admin${blank}`)).toBe(`adminU+${code}`);
});
