import { setTimeout } from 'node:timers/promises';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { now } from '../../src/base/clock.js';
import { WakeableSleep } from '../../src/waiting/wakeable-sleep.js';
import { timers } from './counted-clock.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

const LONG = 60_000;
const SHORT = 40;

/**
 * Whether the sleep lasts longer than a timer that is set in the same turn of the event loop. By the clock it may be
 * shorter: Node counts a timer from the beginning of that turn, in which a busy machine may have stopped the process.
 */
async function isLong(sleep: Promise<void>): Promise<boolean> {
  return await Promise.race([sleep.then(() => false), setTimeout(SHORT / 2, true)]);
}

describe('the bell', () => {
  beforeEach(() => timers.clear());

  test('a sleep ends by itself', async () => {
    const sleep = new WakeableSleep().sleep(SHORT);
    expect(await isLong(sleep)).toBe(true);
    await sleep;
    expect(timers.size).toBe(0);
  });

  test('a ring ends a sleep, and leaves no timer', async () => {
    const bell = new WakeableSleep();
    const sleep = bell.sleep(LONG);
    bell.wake();
    await sleep;
    expect(timers.size).toBe(0);
  });

  test('a ring that came before the sleep ends it at once', async () => {
    const bell = new WakeableSleep();
    bell.wake();
    await bell.sleep(LONG);
    expect(timers.size).toBe(0);
  });

  test('a ring that was forgotten ends nothing', async () => {
    const bell = new WakeableSleep();
    bell.wake();
    bell.reset();
    expect(await isLong(bell.sleep(SHORT))).toBe(true);
  });

  test('a ring later brings a long sleep forward', async () => {
    const bell = new WakeableSleep();
    const sleep = bell.sleep(LONG);
    bell.wakeIn(SHORT);
    expect(await isLong(sleep)).toBe(true);
    await sleep;
    expect(timers.size).toBe(0);
  });

  test('a ring later puts off the end of a short sleep: what it was to end at is out of date', async () => {
    const bell = new WakeableSleep();
    const sleep = bell.sleep(1);
    bell.wakeIn(SHORT);
    expect(await isLong(sleep)).toBe(true);
    await sleep;
  });

  test('of two rings in a sleep the last one counts, and a ring at once ends it all the same', async () => {
    const bell = new WakeableSleep();
    const sleep = bell.sleep(LONG);
    bell.wakeIn(1);
    bell.wakeIn(SHORT);
    expect(await isLong(sleep)).toBe(true);
    await sleep;
    const next = bell.sleep(LONG);
    bell.wakeIn(LONG);
    bell.wake();
    await next;
    expect(timers.size).toBe(0);
  });

  test.each([[[LONG, SHORT]], [[SHORT, LONG]]])('before a sleep the earlier of two rings counts: %j', async (rings) => {
    const bell = new WakeableSleep();
    const from = now();
    for (const ring of rings) bell.wakeIn(ring);
    await bell.sleep(LONG);
    expect(now() - from).toBeGreaterThanOrEqual(SHORT / 2);
    expect(now() - from).toBeLessThan(LONG / 2);
  });

  test('a ring before a sleep does not make it longer', async () => {
    const bell = new WakeableSleep();
    bell.wakeIn(LONG);
    const from = now();
    await bell.sleep(SHORT);
    expect(now() - from).toBeLessThan(LONG / 2);
  });

  test('a ring is for one sleep: the next one, after a reset, is not ended by it', async () => {
    const bell = new WakeableSleep();
    const first = bell.sleep(LONG);
    bell.wake();
    await first;
    bell.reset();
    expect(await isLong(bell.sleep(SHORT))).toBe(true);
  });
});
