import { expect, test } from 'vitest';
import { slotOf } from '../../../src/redis/topology/slot.js';

// As Redis 7.0.15 says; test/redis/topology/cluster-client.slow.test.ts asks one.
test.each([
  ['', 0],
  ['123456789', 12_739],
  ['a', 15_495],
  ['🔒', 15_505],
  ['{stock:1}:lease', 1_603],
  ['{{a}}b', 10_276],
  ['{}a', 10_875],
  ['a{}{b}', 15_033],
  ['a{b', 13_340],
  ['a}b', 7_866],
  ['}{a}', 15_495],
])('the slot of %j is %i', (name, slot) => {
  expect(slotOf(name)).toBe(slot);
});
