import { expect, test, vi } from 'vitest';
import { fakeLocks } from '../../../../src/addons/testing/index.js';

// Jest's `fakeTimers: { enableGlobally: true }` replaces `process.nextTick` before a test file loads this package.
vi.hoisted(() => {
  const { nextTick } = process;
  process.nextTick = (...given) => {
    if (!new Error('where').stack?.includes('base/clock')) nextTick(...given);
  };
});

test('a fake needs no ticks of Node, which fake timers may have stopped before the package was loaded', async () => {
  const locks = fakeLocks({ stock: { update: async () => 'done' } });
  expect(await locks.prisma.$withLock('stock:1', (tx) => tx['stock'].update())).toBe('done');
  const forgotten = locks.prisma.$withLock('stock:1', (tx) => void tx['stock'].update());
  await expect(forgotten).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
  await locks.prisma['$disconnect']();
});
