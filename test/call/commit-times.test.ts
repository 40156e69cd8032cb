import { expect, test } from 'vitest';
import { CommitTimes } from '../../src/call/commit-times.js';

test('COMMITs count as long until one has been measured', () => {
  expect(new CommitTimes().areLong).toBe(true);
});

test('COMMITs count as short when most of the last ones were, and as long again when they become slow', () => {
  const times = new CommitTimes();
  for (const ms of [20, ...Array(50).fill(0.3)]) times.note(ms);
  expect(times.areLong).toBe(false);
  for (let slow = 0; slow < 3; slow++) times.note(3);
  expect(times.areLong).toBe(true);
});
