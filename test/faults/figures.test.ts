import { expect, test } from 'vitest';
import { add, figuresOf } from '../support/faults/figures.js';
import type { History } from '../support/faults/history.js';

const KEY = 'stock:1';

const HISTORY: History = {
  from: 1_000,
  to: 1_100,
  keys: [{ key: KEY, first: 0, last: 3 }],
  operations: [
    told('a', { at: 1_020, outcome: 'ok' }),
    told('b', { at: 1_050, outcome: 'unknown', code: 'COMMIT_UNKNOWN' }),
    told('c', { at: 1_090, outcome: 'error', code: 'LOCK_LOST' }),
    told('d'),
  ],
  turns: ['a', 'b', 'c', 'd'].map((operation, index) => ({
    operation,
    keys: [KEY],
    token: String(index + 1),
    at: 1_010 + index,
  })),
  entries: [
    { operation: 'a', key: KEY, token: 1n, before: 0, after: 1 },
    { operation: 'b', key: KEY, token: 2n, before: 1, after: 3 },
  ],
  strikes: [
    { fault: 'FLUSHALL', target: 'redis', from: 1_030, to: 1_040, missed: false },
    { fault: 'Redis frozen', target: 'redis', from: 1_031, to: 1_031, missed: true },
  ],
  calms: [{ from: 1_015, callers: ['w1.a'] }],
  troubles: [],
  events: { 'lease-lost': 1 },
  killed: ['w1'],
  left: { idleInTransaction: [], leases: [] },
};

function told(id: string, answer?: History['operations'][number]['told']) {
  return {
    id,
    worker: 'w1',
    caller: `w1.${id}`,
    keys: [KEY],
    way: '$withLock',
    askedAt: 1_005,
    ...(answer && { told: answer }),
  };
}

test('figures count what was told, what is there, and what struck', () => {
  expect(figuresOf(HISTORY)).toEqual({
    operations: 4,
    committed: 2,
    ways: { $withLock: 2 },
    told: { ok: 1, COMMIT_UNKNOWN: 1, LOCK_LOST: 1 },
    unknown: { committed: 1, rolledBack: 0 },
    untold: { committed: 0, rolledBack: 1 },
    strikes: { FLUSHALL: 1 },
    missed: 1,
    events: { 'lease-lost': 1 },
    longestCall: 85,
    longestStall: 5,
    violations: [],
  });
});

test('figures of two rounds add up', () => {
  const one = figuresOf(HISTORY);
  expect(add(one, one)).toMatchObject({
    committed: 4,
    told: { ok: 2 },
    unknown: { committed: 2, rolledBack: 0 },
    strikes: { FLUSHALL: 2 },
    longestCall: 85,
  });
});
