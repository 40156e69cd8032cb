import { gate, type ShopClient } from './shop.js';

/**
 * A write of `late` under `key` that is refused, because `early` has written the row under `other` by a later token.
 * Resolves to the error that `late` gets.
 */
export async function refusedWrite(
  late: ShopClient,
  early: ShopClient,
  id: number,
  key: string,
  other = `${key}:other`,
): Promise<unknown> {
  const [inside, goOn] = [gate(), gate()];
  const refused = late.$withLock(key, async (tx) => {
    inside.open();
    await goOn.opened;
    await tx.stock.update({ where: { id }, data: { quantity: 9 } });
  });
  const outcome = refused.catch((error: unknown) => error);
  await inside.opened;
  await early.$withLock(other, (tx) => tx.stock.update({ where: { id }, data: { quantity: 7 } }));
  goOn.open();
  return await outcome;
}
