import { afterEach, describe, expect, test, vi } from 'vitest';
import { AnswerTimer, after, Deadline, now, OVERDUE, sleep, stop, within } from '../../src/base/clock.js';
import { gate } from '../support/shop.js';

describe('the clock', () => {
  afterEach(() => void vi.useRealTimers());

  test("a user's fake timers do not stop it", async () => {
    vi.useFakeTimers();
    const before = now();
    await sleep(20);
    expect(now()).toBeGreaterThan(before);
    expect(Date.now()).toBe(Date.now());
  });

  test('a wall clock that is set back does not move a deadline', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const deadline = new Deadline(60_000);
    vi.setSystemTime(new Date('2000-01-01'));
    expect(deadline.remaining).toBeGreaterThan(59_000);
    expect(deadline.remaining).toBeLessThanOrEqual(60_000);
    vi.setSystemTime(new Date('2100-01-01'));
    expect(deadline.passed).toBe(false);
    expect(new Deadline(0).passed).toBe(true);
    expect(new Deadline(-5).remaining).toBe(0);
  });

  test('a time that is longer than a timer can be does not fire at once', async () => {
    let fired = 0;
    const timers = [Number.POSITIVE_INFINITY, 2 ** 40].map((ms) => after(ms, () => fired++));
    await sleep(20);
    expect(fired).toBe(0);
    for (const timer of timers) stop(timer);
  });
});

describe('a timer for an answer', () => {
  test('does not act if it is stopped after its time and before the sockets are read', async () => {
    let acted = false;
    const timer = new AnswerTimer(1, () => {
      acted = true;
    });
    // Both timers are due in one turn of the event loop: this one stops the other after it has fired.
    setTimeout(() => timer.stop(), 1);
    const until = now() + 20;
    while (now() < until);
    await sleep(10);
    expect(acted).toBe(false);
  });
});

describe('within', () => {
  test('gives the result, or OVERDUE; a rejection that comes later is nobody’s', async () => {
    expect(await within(Promise.resolve(1), 60_000)).toBe(1);
    const late = gate<never>();
    expect(await within(late.opened, 5)).toBe(OVERDUE);
    let reject: (reason: unknown) => void = () => {};
    const failing = new Promise((_, no) => {
      reject = no;
    });
    expect(await within(failing, 5)).toBe(OVERDUE);
    // An unhandled rejection would end the run.
    reject(new Error('too late'));
    await sleep(1);
    await expect(within(Promise.reject(new Error('soon')), 60_000)).rejects.toThrow('soon');
  });
});
