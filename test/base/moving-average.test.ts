import { expect, test } from 'vitest';
import { MovingAverage } from '../../src/base/moving-average.js';

test('an average is below no limit until a value has been noted', () => {
  expect(new MovingAverage().isBelow(1)).toBe(false);
});

test('an average is below a limit when most of the last values were, and above it again when they rise', () => {
  const times = new MovingAverage();
  for (const ms of [20, ...Array(50).fill(0.3)]) times.note(ms);
  expect(times.isBelow(1)).toBe(true);
  for (let slow = 0; slow < 3; slow++) times.note(3);
  expect(times.isBelow(1)).toBe(false);
});
