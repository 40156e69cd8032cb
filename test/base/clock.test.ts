import { afterEach, describe, expect, test, vi } from 'vitest';
import { after, Deadline, now, sleep, stop } from '../../src/base/clock.js';

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
