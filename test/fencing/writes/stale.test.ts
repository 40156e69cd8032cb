import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { StaleTokenError, toFencedLockError } from '../../../src/index.js';
import { FenceWorld, FRESHER } from '../../support/fence-world.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { makeRows, raise } from './rows.js';

for (const guard of [undefined, 'prove'] as const) {
  describeWithShop(`what a refused write is told, guard: ${guard ?? 'none'}`, () => {
    const world = new FenceWorld(`fence_stale_${guard ?? 'none'}`, guard);

    /** Rows of their own, the tag of which is fresher. */
    const rowsWithFresherTag = () =>
      world.overriding(async (session) => {
        const rows = await makeRows(session);
        await session.query(raise('Tag', rows.Tag));
        return rows;
      });

    test('both tokens, the row and what to do', async () => {
      const { Tag, n } = await rowsWithFresherTag();
      let token = 0n;
      const error = await world
        .client()
        .$withLock(`stale:${n}`, (tx, lock) => {
          token = lock.token;
          return tx.tag.update({ where: { id: Tag }, data: { value: 2 } });
        })
        .catch((error: unknown) => error);
      expect(error).toBeInstanceOf(StaleTokenError);
      expect(error).toMatchObject({ reason: 'other-key', model: 'Tag', token, fence: FRESHER, key: `stale:${n}` });
      expect(error).toMatchObject({ where: { id: Tag } });
      const { message } = error as Error;
      for (const part of [String(token), String(FRESHER), 'Tag', 'retries', 'another key'])
        expect(message).toContain(part);
    });

    test('in a handle: that its token stays, and to take it again', async () => {
      const { Tag, n } = await rowsWithFresherTag();
      const handle = await world.client().$lock(`stale:${n}`);
      const write = handle.$transaction((tx) => tx.tag.update({ where: { id: Tag }, data: { value: 2 } }));
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

    test('it is sticky: swallowed, the transaction still does not commit', async () => {
      const { Tag, Member, n } = await rowsWithFresherTag();
      const held = world.client().$withLock(`stale:${n}`, async (tx) => {
        await tx.member.update({ where: { id: Member }, data: { value: 9 } });
        await tx.tag.update({ where: { id: Tag }, data: { value: 2 } }).catch(() => {});
      });
      await expect(held).rejects.toBeInstanceOf(StaleTokenError);
      const { rows } = await world.admin.query('SELECT value FROM people."Member" WHERE id = $1', [Member]);
      expect(rows).toEqual([{ value: 1 }]);
    });

    test('the function can tell it from other errors by toFencedLockError', async () => {
      const { Tag, n } = await rowsWithFresherTag();
      let inside: unknown;
      const held = world.client().$withLock(`stale:${n}`, async (tx) => {
        try {
          await tx.tag.update({ where: { id: Tag }, data: { value: 2 } });
        } catch (error) {
          inside = error;
          throw error;
        }
      });
      const outside = await held.catch((error: unknown) => error);
      expect(inside).toMatchObject({ code: 'STALE_TOKEN' });
      expect(outside).toBeInstanceOf(StaleTokenError);
      expect(toFencedLockError(inside)).toBe(outside);
      for (const error of [inside, outside]) expect(JSON.stringify(error)).toContain(`"fence":"${FRESHER}"`);
      expect(toFencedLockError(new Error('no sale'))).toBeUndefined();
    });

    // Without a guard there is nothing that would notice.
    if (guard !== undefined) {
      test('raw SQL under the lock is told the same', async () => {
        const { Tag, n } = await rowsWithFresherTag();
        const held = world
          .client()
          .$withLock(`stale:${n}`, (tx) => tx.$executeRaw`UPDATE people."Tag" SET value = 3 WHERE id = ${Tag}`);
        await expect(held).rejects.toMatchObject({
          code: 'STALE_TOKEN',
          reason: 'other-key',
          model: 'Tag',
          fence: FRESHER,
        });
      });

      test('a token that Postgres does not know as this transaction’s is superseded', async () => {
        const { Member, n } = await rowsWithFresherTag();
        const held = world.client().$withLock(`stale:${n}`, async (tx) => {
          await tx.$queryRaw`SELECT set_config('fenced_lock.token', '', true)`;
          await tx.member.update({ where: { id: Member }, data: { value: 2 } });
        });
        await expect(held).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded', model: 'Member' });
      });
    }

    test('a write takes as many statements as Prisma makes of it', async () => {
      const { Member, n } = await rowsWithFresherTag();
      const statements: string[] = [];
      const client = world.loggedClient((text) => statements.push(text));
      const update = () =>
        client.$withLock(`stale:${n}`, async (tx) => {
          await tx.member.count();
          statements.length = 0;
          await tx.member.update({ where: { id: Member }, data: { value: 3 } });
          return statements.length;
        });
      await update();
      expect(await update()).toBe(1);
    });
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
