import type { Sale, Seller } from '../contestants/contestant.js';

export interface Holding {
  /** Resolves when the sale that was held is over, however it ended. */
  letGo(): Promise<void>;
}

/** Takes a key and keeps it. */
export async function holding(seller: Seller, sale: Sale): Promise<Holding> {
  return await new Promise((resolve, reject) => {
    const sold = seller.sell({
      ...sale,
      began: () =>
        new Promise<void>((letGo) => {
          resolve({
            letGo() {
              letGo();
              // Held for long, it may have been ended by Prisma or by Postgres.
              return sold.catch(() => {});
            },
          });
        }),
    });
    sold.catch(reject);
  });
}
