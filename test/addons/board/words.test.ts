import { beforeEach, describe, expect, test } from 'vitest';
import { BLANKS } from '../../cli/operator.js';

// The page's own modules, which have no types for the project.
const ofPage = (file: string) => import(new URL(`../../../src/addons/board/page/${file}`, import.meta.url).href);
const { State } = await ofPage('state.js');
const { shownText } = await ofPage('text.js');
const { consequences, linkOf, oldFacts, rateText } = await ofPage('words.js');

const SEEN = new Date(2026, 0, 2, 2, 54, 56).getTime();
const KEYS = { all: true, bar: 1, keys: [], gone: [] };
const status = (more: object = {}) => ({ seenAt: SEEN, missing: [], health: [], redis: [], ...more });
const TROUBLE = { trouble: { text: 'no answer for 3 s', since: SEEN + 4_000 } };

describe('a page that shows keys', () => {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  let state: any;
  beforeEach(() => {
    state = new State();
    state.isConnected = true;
    state.apply('keys', KEYS);
    state.apply('status', status());
  });

  test('says that it is live, and nothing of a key is old', () => {
    expect([linkOf(state, false), state.isOld, oldFacts(state)]).toEqual([{ kind: 'live', text: 'Live' }, false, '']);
  });

  test('does not say so while the keys cannot be read, but as of when they are', () => {
    state.apply('status', status(TROUBLE));
    expect(linkOf(state, false)).toEqual({ kind: 'old', text: 'Connected, but the data is old: as of 02:54:56' });
    expect([state.isOld, oldFacts(state)]).toEqual([true, expect.stringContaining('as of 02:54:56')]);
    state.apply('keys', KEYS);
    state.apply('status', status({ seenAt: SEEN + 9_000 }));
    expect([linkOf(state, false).text, state.isOld]).toEqual(['Live', false]);
  });

  test('has old keys while the server of the board does not answer', () => {
    state.isConnected = false;
    expect(linkOf(state, true)).toEqual({
      kind: 'lost',
      text: expect.stringMatching(/not answer.* as of 02:54:56\.$/),
    });
    expect(state.isOld).toBe(true);
  });

  test('has old keys when the server is back and has not looked yet', () => {
    state.apply('hello', {});
    state.apply('status', status({ seenAt: undefined }));
    expect(linkOf(state, false).text).toBe('Connected, but the data is old: as of 02:54:56');
    state.apply('keys', KEYS);
    expect([linkOf(state, false).text, state.isOld]).toEqual(['Live', false]);
  });
});

describe('before a force release', () => {
  // biome-ignore lint/suspicious/noExplicitAny: see above
  let state: any;
  beforeEach(() => {
    state = new State();
    state.isConnected = true;
    state.apply('keys', KEYS);
    state.apply('status', status());
  });
  const held = { holder: 'h', transaction: null };

  test('the page says what happens to the transaction that it shows', () => {
    const text = consequences(state, { ...held, transaction: { pid: 4711, since: '' } });
    expect(text).toMatch(/^Its open transaction \(Postgres backend 4711\) is ended and rolled back\./);
    expect(text).not.toContain('No transaction');
  });

  test('it claims no transaction where it shows none, and says that one elsewhere goes on', () => {
    const text = consequences(state, held);
    expect(text).toMatch(/^No transaction of it is open in this database; /);
    expect(text).toContain('If it works in another one, it goes on there.');
    expect(text).not.toContain('Its open transaction');
  });

  test('of a key that nobody holds it says nothing of a holder', () => {
    for (const key of [undefined, { ...held, holder: null }]) {
      expect(consequences(state, key)).not.toMatch(/that holder|goes on there/);
    }
  });

  test('while the keys cannot be read it says as of when this is', () => {
    state.apply('status', status(TROUBLE));
    expect(consequences(state, held)).toMatch(/^This is as of 02:54:56, and may be different by now\. /);
  });
});

test('a page without keys says that it connects, and then that they cannot be read', () => {
  const state = new State();
  expect(linkOf(state, false).text).toBe('Connecting …');
  state.isConnected = true;
  state.apply('status', status({ seenAt: undefined, ...TROUBLE }));
  expect([linkOf(state, false).text, state.isOld]).toEqual(['Connected, but the keys cannot be read', false]);
});

test.each([
  ['a whole minute', { ms: 60_000, bars: 12 }, '36 /min'],
  ['ten seconds, in three bars', { ms: 10_000, bars: 3 }, '54 /min'],
  ['a moment', { ms: 500, bars: 1 }, '…'],
  ['nothing yet', { ms: 0, bars: 0 }, '–'],
])('the rate of a key is of the time that was watched: %s', (_, minute, shown) => {
  // Three turns in each of the last twelve bars, and more before.
  const bars = [...Array(48).fill(100), ...Array(12).fill(3)];
  expect(rateText(bars, minute)).toBe(shown);
});

test.each(BLANKS)('a name with a letter that looks like nothing is told from the one without: admin%j', (blank) => {
  const code = blank.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
  expect(shownText(`admin${blank}`)).toBe(`adminU+${code}`);
});
