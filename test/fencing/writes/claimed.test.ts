import { expect, test } from 'vitest';
import { describeOfEachKind, ofKind } from '../../support/client-kinds.js';
import { type FenceTx, FenceWorld } from '../../support/fence-world.js';
import { Shop, type ShopClient } from '../../support/shop.js';

type Tx = Pick<ShopClient, 'stock'>;

/** Writes for which the row is claimed before. */
const WRITES = {
  'update, with a relation in its condition': (tx: Tx, id: number, fence: bigint) =>
    tx.stock.update({ where: { id, fence, orders: { none: { quantity: 5 } } }, data: { quantity: 9 } }),
  upsert: (tx: Tx, id: number, fence: bigint) =>
    tx.stock.upsert({
      where: { id, fence },
      update: { quantity: 9 },
      create: { product: `another one than ${id}`, quantity: 0 },
    }),
  'delete, with a selection': (tx: Tx, id: number, fence: bigint) =>
    tx.stock.delete({ where: { id, fence }, select: { id: true } }),
};

describeOfEachKind('a row that Prisma would look up before it writes it', (kind) => {
  const world = new FenceWorld(`fence_claimed_${kind}`, undefined, [], kind);

  const LOOKED_UP: Record<string, (tx: FenceTx, where: { memberId: number; number: number }) => Promise<unknown>> = {
    'update, with a relation in its condition': (tx, key) =>
      tx.note.update({ where: { memberId_number: key, member: { id: key.memberId } }, data: { value: 5 } }),
    'delete, with an include': (tx, key) =>
      tx.note.delete({ where: { memberId_number: key }, include: { member: true } }),
    'delete, and a relation of it': (tx, key) => tx.note.delete({ where: { memberId_number: key } }).member(),
    upsert: (tx, key) =>
      tx.note.upsert({
        where: { memberId_number: key },
        update: { value: 5 },
        create: { ...key, name: 'n', value: 5 },
      }),
  };

  test.each(Object.entries(LOOKED_UP))('is claimed before: %s', async (name, write) => {
    const statements: string[] = [];
    const client = ofKind(
      kind,
      world.loggedClient((text) => statements.push(text)),
    );
    const { id } = await client.member.create({ data: { name, value: 1 } });
    await client.note.create({ data: { memberId: id, number: 1, name, value: 1 } });
    const given = await client.$withLock(`member:${id}`, async (tx) => {
      await tx.member.count();
      statements.length = 0;
      return await write(tx, { memberId: id, number: 1 });
    });
    expect(statements[0]).toMatch(/^UPDATE "people"."Note" SET "fence" = \$1 WHERE/);
    if (name.startsWith('delete, and')) expect(given).toMatchObject({ id, name });
    expect(await client.note.count({ where: { memberId: id, value: 1 } })).toBe(0);
  });
});

describeOfEachKind('a row that is asked for by the fence that it was read with', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);

  test.each(Object.entries(WRITES))('is found, though a claim has changed that by then: %s', async (_, write) => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 10 } }));
    const { fence } = (await shop.row(id)) ?? { fence: 0n };
    expect(fence).toBeGreaterThan(0n);
    expect(await prisma.$withLock(key, (tx) => write(tx, id, fence))).toMatchObject({ id });
  });

  test.each(Object.entries(WRITES))('is not found by another one: %s', async (kind, write) => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => ({ other: (await write(tx, id, 1n)).id !== id }));
    await (kind === 'upsert' ? expect(held).resolves.toEqual({ other: true }) : expect(held).rejects.toThrow());
    expect(await shop.row(id)).toMatchObject({ quantity: 10, fence: 0n });
  });
});
