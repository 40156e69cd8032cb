import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { InvalidOptionError } from '../../src/base/errors.js';
import { checkKeys, checkParts, checkState } from '../../src/options/arguments.js';

describe('several keys', () => {
  test('are sorted by their bytes, which is not the order of UTF-16, and without duplicates', () => {
    // U+FF5E comes before U+1F512 by bytes, and after it by UTF-16 units.
    expect(checkKeys(['b', '🔒', '～', 'a', 'b'])).toEqual(['a', 'b', '～', '🔒']);
  });

  test.each([
    ['none', []],
    ['a hundred and one', Array.from({ length: 101 }, (_, index) => `k${index}`)],
    ['one that is no text', ['a', 1]],
    ['one that is empty', ['a', '']],
    ['a Set', new Set(['a'])],
  ])('cannot be %s', (_, keys) => {
    expect(() => checkKeys(keys)).toThrow(InvalidOptionError);
    expect(() => checkKeys(keys)).toThrow('`key`');
  });
});

describe('a key in which a value is missing', () => {
  const id = undefined as unknown as number;
  const MISSING: readonly string[] = [
    `stock:${id}`,
    `stock:${Number('x')}`,
    `stock:${{}}`,
    `tenant/${null}/stock/1`,
    `stock-${id}`,
    `day:${new Date('')}`,
    `stock:${''}`,
    `${'\u00A0'}stock:1`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the mistake that is looked for
    'stock:${id}',
  ];

  test.each(MISSING)('is refused: %s', (key) => {
    expect(() => checkParts(['stock:1', key])).toThrow(InvalidOptionError);
    expect(() => checkParts(['stock:1', key])).toThrow(JSON.stringify(key));
    expect(() => checkParts(['stock:1', key])).toThrow("unsetKeyParts: 'allow'");
  });

  test.each([
    'stock:1',
    'day:invalid date',
    'stock:nullable',
    'undefined-behaviour',
    'user:undefinedx',
    'NaNo',
    'a::b',
    'https://shop',
    '{id}',
  ])('is not one that only looks like it: %s', (key) => {
    expect(() => checkParts([key])).not.toThrow();
  });
});

describe('the state of a handle', () => {
  const state = { keys: ['a', 'b'], tokens: ['1', '2'], holders: [randomUUID(), randomUUID()], leaseTime: 30_000 };

  test('comes back from JSON as it was', () => {
    expect(checkState(JSON.parse(JSON.stringify(state)))).toEqual(state);
    expect(checkState({ ...state, tokens: ['1', String(2n ** 63n - 1n)] })).toBeDefined();
  });

  test.each([
    ['nothing', undefined],
    ['a text', JSON.stringify(state)],
    ['keys in another order', { ...state, keys: ['b', 'a'] }],
    ['a key twice', { ...state, keys: ['a', 'a'] }],
    ['too few tokens', { ...state, tokens: ['1'] }],
    ['a token of no digits', { ...state, tokens: ['1', "2'; DROP"] }],
    ['a token above all', { ...state, tokens: ['1', String(2n ** 63n)] }],
    ['a holder that is no id', { ...state, holders: [randomUUID(), 'me'] }],
    ['a lease of no time', { ...state, leaseTime: 0 }],
  ])('cannot be %s', (_, given) => {
    expect(() => checkState(given)).toThrow(InvalidOptionError);
  });
});
