import { describe, expect, test } from 'vitest';
import { check, PROGRESS_WITHIN } from '../support/faults/check.js';
import type { Entry, History, Operation } from '../support/faults/history.js';

const ENTRIES: readonly Entry[] = [
  { operation: 'a.1', key: 'x', token: 1n, before: 0, after: 3 },
  { operation: 'b.1', key: 'x', token: 2n, before: 3, after: 4 },
  { operation: 'b.2', key: 'x', token: 4n, before: 4, after: 6 },
  { operation: 'b.2', key: 'y', token: 4n, before: 0, after: 2 },
  { operation: 'c.1', key: 'y', token: 5n, before: 2, after: 3 },
];

const OPERATIONS: readonly Operation[] = [
  operation('a.1', ['x'], 'ok'),
  operation('b.1', ['x'], 'unknown'),
  operation('b.2', ['x', 'y'], 'ok'),
  operation('a.2', ['x'], 'error'),
  operation('a.3', ['y'], 'unknown'),
  operation('c.1', ['y'], 'ok'),
];

const SOUND: History = {
  from: 0,
  to: 100,
  keys: [
    { key: 'x', first: 0, last: 6 },
    { key: 'y', first: 0, last: 3 },
  ],
  operations: OPERATIONS,
  entries: ENTRIES,
  strikes: [],
  calms: [{ from: 5, callers: ['c'] }],
  troubles: [],
  events: {},
  killed: [],
  left: { idleInTransaction: [], leases: [] },
};

function operation(id: string, keys: readonly string[], outcome?: 'ok' | 'error' | 'unknown'): Operation {
  const caller = id.slice(0, 1);
  const told = outcome && { at: 10, outcome, ...(outcome === 'error' && { code: 'LOCK_LOST' }) };
  return { id, worker: caller, caller, keys, way: '$withLock', askedAt: 6, ...(told && { told }) };
}

/** The sound history with another form of one entry. */
function entry(index: number, change: Partial<Entry>): Partial<History> {
  return { entries: ENTRIES.map((each, at) => (at === index ? { ...each, ...change } : each)) };
}

function told(id: string, outcome?: 'ok' | 'error' | 'unknown'): Partial<History> {
  return { operations: OPERATIONS.map((each) => (each.id === id ? operation(id, each.keys, outcome) : each)) };
}

/** Those operations are transactions of handles: operation, handle, how often resumed. */
function ofHandles(...given: string[]): Partial<History> {
  const parts = new Map(
    given.map((each) => {
      const [of = '', id = '', resumed = '0'] = each.split(' ');
      return [of, { id, resumed: Number(resumed) }];
    }),
  );
  return {
    operations: OPERATIONS.map((each) => {
      const handle = parts.get(each.id);
      return handle === undefined ? each : { ...each, handle };
    }),
  };
}

describe('the history checker', () => {
  test('finds nothing in a sound history', () => {
    expect(check(SOUND)).toEqual([]);
  });

  test('takes a call that was cut off with its process for one of unknown outcome', () => {
    expect(check({ ...SOUND, ...told('b.1'), killed: ['b'] })).toEqual([]);
    expect(check({ ...SOUND, ...told('a.3'), killed: ['a'] })).toEqual([]);
  });

  test('lets the transactions of one handle have one token, also where it was resumed elsewhere', () => {
    const [first, second, third] = ENTRIES.map((each) => ({ ...each, token: 4n }));
    const entries = [first, second, third, ...ENTRIES.slice(3)] as Entry[];
    expect(check({ ...SOUND, entries, ...ofHandles('a.1 h 0', 'b.1 h 0', 'b.2 h 1') })).toEqual([]);
  });

  const twice = (index: number): Partial<History> => {
    const again = ENTRIES[index] as Entry;
    return {
      entries: [...ENTRIES, { ...again, token: 9n, before: 6, after: 7 }],
      keys: SOUND.keys.map((each) => (each.key === 'x' ? { ...each, last: 7 } : each)),
    };
  };

  test.each<[kind: string, planted: string, change: Partial<History>]>([
    ['lost-update', 'two read the same', entry(1, { before: 0, after: 4 })],
    ['lost-update', 'the first one read something else', entry(0, { before: 1 })],
    ['lost-update', 'a link is missing', entry(1, { after: 5 })],
    ['lost-update', 'the row was overwritten', { keys: [{ key: 'x', first: 0, last: 5 }] }],
    ['token-order', 'a lower token wrote later', entry(2, { token: 1n })],
    ['token-order', 'a token was issued twice', entry(1, { token: 1n })],
    ['token-order', 'two handles with one token', { ...entry(1, { token: 1n }), ...ofHandles('a.1 h', 'b.1 other') }],
    ['token-order', 'a token of a handle and of none', { ...entry(1, { token: 1n }), ...ofHandles('b.1 h') }],
    ['token-order', 'somebody else within a handle', { ...entry(2, { token: 1n }), ...ofHandles('a.1 h', 'b.2 h') }],
    ['token-order', 'a handle that was resumed', { ...entry(1, { token: 1n }), ...ofHandles('a.1 h 1', 'b.1 h 0') }],
    ['handle-token', 'a handle with two tokens', ofHandles('a.1 h', 'b.1 h')],
    ['ok-missing', 'reported as done and rolled back', told('a.3', 'ok')],
    ['ok-twice', 'reported as done and done twice', twice(0)],
    ['error-present', 'reported as failed and committed', told('a.1', 'error')],
    ['unknown-twice', 'of unknown outcome and done twice', twice(1)],
    [
      'half-present',
      'done for one of two keys',
      { ...told('b.2', 'unknown'), entries: ENTRIES.toSpliced(3, 1), keys: SOUND.keys.slice(0, 1) },
    ],
    ['nobodys-entry', 'asked for by nobody', { operations: OPERATIONS.slice(1) }],
    ['never-told', 'a call that hangs', told('a.3')],
    ['no-progress', 'a caller that waits for ever', { calms: [{ from: 11, callers: ['c'] }] }],
    ['no-progress', 'a caller that waits too long', { calms: [{ from: 9 - PROGRESS_WITHIN, callers: ['c'] }] }],
    ['idle-in-transaction', 'a session left open', { left: { idleInTransaction: ['pid 1'], leases: [] } }],
    ['lease-left', 'a lease of nobody', { left: { idleInTransaction: [], leases: ['x'] } }],
    ['trouble', 'an unhandled rejection', { troubles: [{ worker: 'a', at: 1, what: 'unhandled rejection' }] }],
  ])('finds %s: %s', (kind, _, change) => {
    expect(new Set(check({ ...SOUND, ...change }).map((each) => each.kind))).toEqual(new Set([kind]));
  });
});
