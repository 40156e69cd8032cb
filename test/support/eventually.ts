import { setTimeout as sleep } from 'node:timers/promises';
import { vi } from 'vitest';

/** For what gives no event: asks until the answer is given. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { within = 25_000, every = 10 } = {},
): Promise<T> {
  const deadline = performance.now() + within;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${within} ms: ${what}`);
    await sleep(every);
  }
}

/** Repeats the check until it throws no more. Vitest's own limit of a second is short for a busy machine. */
export function untilHolds<T>(check: () => T | Promise<T>, { timeout = 25_000, interval = 20 } = {}): Promise<T> {
  return vi.waitFor(check, { timeout, interval });
}
