import { setTimeout as sleep } from 'node:timers/promises';
import { askServer, type FailoverGroup } from './servers/index.js';

/** For how long nothing got done, at the longest; milliseconds. */
export class Gaps {
  #done = 0;
  #last = performance.now();
  #longest = 0;

  did(): void {
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
    this.#done++;
  }

  get done(): number {
    return this.#done;
  }

  get longest(): number {
    return Math.max(this.#longest, performance.now() - this.#last);
  }
}

/** Writes the name until it is `over`, past every client: for how long did no node take a write? */
export async function write({ nodes }: FailoverGroup, name: string, gaps: Gaps, over: () => boolean): Promise<void> {
  while (!over()) {
    // Replicas and nodes without the slot refuse; one that is gone or frozen says nothing.
    await Promise.any(nodes.map(({ url }) => askServer(url, 'SET', name, ''))).then(
      () => gaps.did(),
      () => {},
    );
    await sleep(20);
  }
}
