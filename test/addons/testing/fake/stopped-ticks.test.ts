import { expect, test, vi } from 'vitest';
import { fakeLocks } from '../../../../src/addons/testing/index.js';

// Jest's `fakeTimers: { enableGlobally: true }` replaces `process.nextTick` before a test file loads this package.
vi.mock('../../../../src/base/clock.js', async (original) => ({
  ...(await original<object>()),
  reactionsDone: () => new Promise(() => {}),
}));

test('a fake needs no ticks of Node, which fake timers may have stopped before the package was loaded', async () => {
  const locks = fakeLocks({ stock: { update: async () => 'done' } });
  expect(await locks.prisma.$withLock('stock:1', (tx) => tx['stock'].update())).toBe('done');
  const forgotten = locks.prisma.$withLock('stock:1', (tx) => void tx['stock'].update());
  await expect(forgotten).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
  locks.next().isLost({ after: 1 });
  const lost = locks.prisma.$withLock('stock:1', async (tx) => {
    await tx['stock'].update();
    await tx['stock'].update();
  });
  await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
});
