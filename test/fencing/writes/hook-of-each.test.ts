import { afterAll, expect, test } from 'vitest';
import { processWide } from '../../../src/base/process-wide.js';
import { InvalidOptionError } from '../../../src/index.js';
import { describeOfEachKind, ofKind } from '../../support/client-kinds.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';

describeOfEachKind('transactions of one client on a model without a guard, at work at the same time', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);

  test('each writes with its own token, however often they write beside each other', async () => {
    const products = await Promise.all(Array.from({ length: 6 }, () => shop.product(10)));
    const tokens = new Map<number, bigint>();
    let arrived = 0;
    const allAdmitted = gate();
    await Promise.all(
      products.map(({ id, key }, at) =>
        prisma.$withLock(key, async (tx, { token }) => {
          tokens.set(id, token);
          if (++arrived === products.length) allAdmitted.open();
          await allAdmitted.opened;
          for (let turn = at; turn < products.length; turn++) {
            await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
          }
        }),
      ),
    );
    for (const [at, { id }] of products.entries()) {
      expect(await shop.row(id)).toEqual({ quantity: 10 - (products.length - at), fence: tokens.get(id) });
    }
  });
});

describeWithShop('a version of Prisma that does not tell the id of a transaction', () => {
  const shop = new Shop();
  const IDS = new Set<unknown>([
    Symbol.for('prisma.client.transaction.id'),
    Symbol.for('prisma.client.transaction.scope_context'),
  ]);

  // That the id is unknown is remembered until the process ends, and the tests of other files run in it, too.
  afterAll(() => void processWide('transactions', () => new Set<unknown>()).delete(undefined));

  function withoutIds(options: { models?: string[] }) {
    const { plain } = shop.client();
    const { $transaction: original } = plain as unknown as { $transaction: (...given: unknown[]) => unknown };
    const hidden = (tx: object) =>
      new Proxy(tx, { get: (target, name) => (IDS.has(name) ? undefined : Reflect.get(target, name)) });
    const extended = plain.$extends({
      client: {
        $transaction(work: (tx: object) => unknown, given: unknown) {
          return original.call(this, (tx: object) => work(hidden(tx)), given);
        },
      },
    });
    return shop.extend(extended, options);
  }

  test('is refused where a fenced model has no guard: a write would not find the fence of its transaction', async () => {
    const { id, key } = await shop.product(10);
    const held = withoutIds({}).$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    await expect(held).rejects.toBeInstanceOf(InvalidOptionError);
    await expect(held).rejects.toThrow('does not tell the id of a transaction');
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
