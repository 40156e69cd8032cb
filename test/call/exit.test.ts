import { expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

describeWithShop('a process', () => {
  const shop = new Shop();

  /**
   * Rounds of 10 ms that the process runs on while something keeps it: far fewer than in the second for which a connection
   * of ours lingers, or in any lease. Counted and not timed: a process that gets no processor counts no rounds.
   */
  const PROMPTLY = 30;

  const SITUATIONS = [
    { what: 'handle', how: 'prisma first' },
    { what: 'contention', how: 'redis first' },
    { what: 'contention', how: 'past the extension' },
    // Who waits is turned away by nobody where the extension is passed by, and so it keeps the process.
    { what: 'waiting', how: 'prisma first' },
  ] as const;

  test.each(SITUATIONS)('ends by itself with $what behind it, its clients closed: $how', async ({ what, how }) => {
    const { key } = await shop.product(10);
    const args = [inject('postgres').app, inject('redis').url as string, key, what, how];
    const isBehind = what === 'contention' || what === 'waiting';
    const lock = isBehind ? await shop.client().prisma.$lock(key) : undefined;
    const worker = startWorker(new URL('./leaver.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    if (isBehind) {
      await shop.queued(key);
      if (what === 'contention') await lock?.release();
    }
    await worker.next('ready');
    worker.send({ type: 'close' });
    const { code } = await worker.next('closed');
    expect(code).toBe(what === 'waiting' ? 'CLOSED' : undefined);
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    expect(Number(/nothing left to do after (\d+) rounds/.exec(worker.output)?.[1]), worker.output).toBeLessThan(
      PROMPTLY,
    );
    await lock?.release();
  });
});
