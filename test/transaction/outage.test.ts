import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import { LazyAbort } from '../../src/base/lazy-abort.js';
import { Outage } from '../../src/transaction/outage.js';

/** A server that is away for so many questions. */
function away(questions: number) {
  let asked = 0;
  const rescue = async () => {
    asked++;
    if (asked <= questions) throw new Error('away');
    return [];
  };
  return { database: { rescue, isUnavailable: () => true }, asked: () => asked };
}

test('of many who wait for the server one asks, and all go on at its answer', async () => {
  const { database, asked } = away(2);
  const outage = new Outage();
  const waiting = Array.from({ length: 50 }, () => outage.wait(database, new LazyAbort(), new Deadline(10_000)));
  await Promise.all(waiting);
  expect(asked()).toBe(3);
});

test('nobody is asked any more when the last of them has given up', async () => {
  const { database, asked } = away(Number.POSITIVE_INFINITY);
  const outage = new Outage();
  const strike = new LazyAbort();
  const waiting = outage.wait(database, strike, new Deadline(10_000));
  strike.abort('enough');
  await expect(waiting).rejects.toBe('enough');
  const before = asked();
  await pause(400);
  // One may have been under way.
  expect(asked() - before).toBeLessThanOrEqual(1);
});
