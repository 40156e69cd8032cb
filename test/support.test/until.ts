import { setTimeout as sleep } from 'node:timers/promises';

/** For what gives no event, such as the end of a stranger's process. */
export async function until(condition: () => boolean, what: string, within = 25_000): Promise<void> {
  const deadline = performance.now() + within;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${within} ms: ${what}`);
    await sleep(20);
  }
}
