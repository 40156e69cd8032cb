import { execFile } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  AnswerTimer,
  after,
  Deadline,
  now,
  OVERDUE,
  sleep,
  TimeLimit,
  unlessAborted,
  within,
} from '../../src/base/clock.js';
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
    for (const timer of timers) timer.stop();
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

describe('a time limit', () => {
  const until = (time: number) => {
    while (now() < time);
  };

  test('each of several is over, in whichever order they began, and not before its time', async () => {
    const began = now();
    const over: [ms: number, after: number][] = [];
    const times = [30, 5, 50, 5, 20, 10];
    const all = times.map(
      (ms) =>
        new Promise<void>((resolve) => {
          new TimeLimit(ms, () => {
            over.push([ms, now() - began]);
            resolve();
          });
        }),
    );
    await Promise.all(all);
    for (const [ms, at] of over) expect(at).toBeGreaterThanOrEqual(ms);
  });

  test('one that was stopped is never over, and the others are', async () => {
    const over: string[] = [];
    const stopped = new TimeLimit(5, () => over.push('stopped'));
    const other = new Promise<void>((resolve) => {
      new TimeLimit(20, () => {
        over.push('other');
        resolve();
      });
    });
    stopped.stop();
    await other;
    stopped.stop();
    expect(over).toEqual(['other']);
  });

  test('is not over if it is stopped after its time and before the sockets are read', async () => {
    let isOver = false;
    const limit = new TimeLimit(1, () => {
      isOver = true;
    });
    setTimeout(() => limit.stop(), 1);
    until(now() + 20);
    await sleep(10);
    expect(isOver).toBe(false);
  });

  test('one that begins behind others that are longer, over or stopped, is over at its time', async () => {
    const long = new TimeLimit(60_000, () => {});
    for (let round = 0; round < 20; round++) {
      const began = now();
      const ms = 1 + (round % 4);
      new TimeLimit(40, () => {}).stop();
      await new Promise<void>((resolve) => void new TimeLimit(ms, resolve));
      expect(now() - began).toBeGreaterThanOrEqual(ms);
    }
    long.stop();
  });

  test('an endless one does not fire at once', async () => {
    let isOver = false;
    const limit = new TimeLimit(Number.POSITIVE_INFINITY, () => {
      isOver = true;
    });
    await sleep(20);
    expect(isOver).toBe(false);
    limit.stop();
  });

  test('keeps the process running until it is over, and no longer; not when it is stopped', async () => {
    const clock = new URL('../../src/base/clock.ts', import.meta.url);
    const run = async (code: string) => {
      const source = `import { now, TimeLimit } from ${JSON.stringify(clock)}; const began = now();
        process.on('exit', () => console.log(now() - began)); ${code}`;
      const { stdout } = await promisify(execFile)(process.execPath, [
        '--import',
        'tsx',
        '--input-type=module',
        '--eval',
        source,
      ]);
      return Number(stdout);
    };
    const [running, stopped, again, past] = await Promise.all([
      run('new TimeLimit(300, () => {});'),
      run('new TimeLimit(60_000, () => {}).stop();'),
      run('new TimeLimit(200, () => {}).stop(); new TimeLimit(300, () => {});'),
      run('new TimeLimit(60_000, () => {}).stop(); new TimeLimit(1, () => {});'),
    ]);
    expect(running).toBeGreaterThanOrEqual(300);
    expect(again).toBeGreaterThanOrEqual(300);
    for (const time of [running, stopped, again, past]) expect(time).toBeLessThan(50_000);
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

describe('unlessAborted', () => {
  test('gives the result and leaves no listener on the signal', async () => {
    const { signal } = new AbortController();
    expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(await unlessAborted(Promise.resolve(2), undefined)).toBe(2);
  });

  test('rejects with the reason as soon as the signal aborts, and at once if it has', async () => {
    const caller = new AbortController();
    const gone = unlessAborted(gate().opened, caller.signal);
    caller.abort('home');
    await expect(gone).rejects.toBe('home');
    await expect(unlessAborted(gate().opened, caller.signal)).rejects.toBe('home');
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });
});
