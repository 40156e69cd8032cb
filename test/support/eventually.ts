import { setTimeout as sleep } from 'node:timers/promises';

/** For what gives no event: asks until the answer is given. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { within = 10_000, every = 10 } = {},
): Promise<T> {
  const deadline = performance.now() + within;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${within} ms: ${what}`);
    await sleep(every);
  }
}
