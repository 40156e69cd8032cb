import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

describeWithShop('a process', () => {
  const shop = new Shop();

  /** Far shorter than any connection of ours lingers, or any lease stands. */
  const PROMPTLY = 800;

  const SITUATIONS = (['nothing', 'handle', 'contention', 'waiting'] as const).flatMap((what) =>
    (['prisma first', 'redis first', 'past the extension'] as const)
      // Who waits is turned away by nobody where the extension is passed by, and so it keeps the process.
      .filter((how) => how === 'prisma first' || !(what === 'nothing' || (what === 'waiting' && how !== 'redis first')))
      .map((how) => ({ what, how })),
  );

  test.each(SITUATIONS)('ends by itself with $what behind it, its clients closed: $how', async ({ what, how }) => {
    const { key } = await shop.product(10);
    const args = [inject('postgres').app, inject('redis').url as string, key, what, how];
    const isBehind = what === 'contention' || what === 'waiting';
    const lock = isBehind ? await shop.client().prisma.$lock(key) : undefined;
    const worker = startWorker(new URL('./leaver.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    const redis = shop.redis();
    if (isBehind) {
      await eventually('it waits', async () => (await redis.llen(`fenced-lock:{${key}}:queue`)) === 1);
      if (what === 'contention') await lock?.release();
    }
    await worker.next('ready');
    const since = performance.now();
    worker.send({ type: 'close' });
    const { code } = await worker.next('closed');
    expect(code).toBe(what === 'waiting' ? 'CLOSED' : undefined);
    const toClose = Math.round(performance.now() - since);
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    const toEnd = Number(/nothing left to do after (\d+) ms/.exec(worker.output)?.[1]);
    console.log(`${what}, ${how}: ${toClose} ms to close, ${toEnd} ms more to end`);
    expect(toEnd).toBeLessThan(PROMPTLY);
    await lock?.release();
  });
});
