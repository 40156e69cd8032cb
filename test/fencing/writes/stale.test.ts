import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { StaleTokenError } from '../../../src/index.js';
import { FenceWorld, FRESHER } from '../../support/fence-world.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { beginAgain } from './rows.js';

for (const guard of [undefined, 'prove'] as const) {
  describeWithShop(`what a refused write is told, guard: ${guard ?? 'none'}`, () => {
    const world = new FenceWorld(`fence_stale_${guard ?? 'none'}`, guard);

    /** Rows of which the tag is fresher. */
    const fresherTag = () => world.admin.query(beginAgain([['Tag', 1]]));

    test('both tokens, the row and what to do', async () => {
      await fresherTag();
      let token = 0n;
      const error = await world
        .client()
        .$withLock('stale', (tx, lock) => {
          token = lock.token;
          return tx.tag.update({ where: { id: 1 }, data: { value: 2 } });
        })
        .catch((error: unknown) => error);
      expect(error).toBeInstanceOf(StaleTokenError);
      expect(error).toMatchObject({ reason: 'other-key', model: 'Tag', token, fence: FRESHER, key: 'stale' });
      expect(error).toMatchObject({ where: { id: 1 } });
      const { message } = error as Error;
      for (const part of [String(token), String(FRESHER), 'Tag', 'retries', 'another key'])
        expect(message).toContain(part);
    });

    test('in a handle: that its token stays, and to take it again', async () => {
      await fresherTag();
      const handle = await world.client().$lock('stale');
      const write = handle.$transaction((tx) => tx.tag.update({ where: { id: 1 }, data: { value: 2 } }));
      const error = await write.catch((error: unknown) => error);
      expect(error).toMatchObject({ reason: 'other-key', token: handle.token, fence: FRESHER, ofHandle: true });
      const { message } = error as Error;
      expect(message).toContain('release the handle and take it again');
      expect(message).not.toContain('retries');
      // What Postgres says is shown below it, and must hold for a handle, too.
      const shown = inspect(error, { depth: 9 });
      expect(shown).not.toContain('Run the work again, under a fresh token');
      if (guard !== undefined) expect(shown).toContain('A handle keeps its token: release it, and take a new one.');
      await handle.release();
    });

    // Without a guard there is nothing that would notice.
    if (guard !== undefined) {
      test('raw SQL under the lock is told the same', async () => {
        await fresherTag();
        const held = world
          .client()
          .$withLock('stale', (tx) => tx.$executeRaw`UPDATE people."Tag" SET value = 3 WHERE id = 1`);
        await expect(held).rejects.toMatchObject({
          code: 'STALE_TOKEN',
          reason: 'other-key',
          model: 'Tag',
          fence: FRESHER,
        });
      });

      test('a token that Postgres does not know as this transaction’s is superseded', async () => {
        await fresherTag();
        const held = world.client().$withLock('stale', async (tx) => {
          await tx.$queryRaw`SELECT set_config('fenced_lock.token', '', true)`;
          await tx.member.update({ where: { id: 3 }, data: { value: 2 } });
        });
        await expect(held).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded', model: 'Member' });
      });
    }
  });
}

describeWithShop('rows and JSON', () => {
  const shop = new Shop();

  test('a bigint is nothing for JSON, and the omit line of docs/guard.md leaves it out', async () => {
    const { id } = await shop.product(3);
    const { prisma } = shop.client();
    expect(() => JSON.stringify({ fence: 1n })).toThrow(TypeError);
    const { id: other, key } = await shop.product(4);
    const omitting = shop.omitting();
    const read = await omitting.stock.findUniqueOrThrow({ where: { id } });
    expect(JSON.parse(JSON.stringify(read))).toMatchObject({ id, quantity: 3 });
    const written = await omitting.$withLock(key, (tx) =>
      tx.stock.update({ where: { id: other }, data: { quantity: 5 } }),
    );
    expect(JSON.parse(JSON.stringify(written))).toMatchObject({ id: other, quantity: 5 });
    expect(written).not.toHaveProperty('fence');
    expect((await prisma.stock.findUniqueOrThrow({ where: { id: other } })).fence).toBeGreaterThan(0n);
  });
});
