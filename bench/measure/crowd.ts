import type { Sale, Seller } from '../contestants/contestant.js';
import { type Burst, burst } from './burst.js';

/** A number of callers who together make all of the sales, each the next one as soon as it is free; and each one's time. */
export async function crowd(
  seller: Seller,
  sales: readonly Sale[],
  callers: number,
): Promise<Burst & { times: number[] }> {
  const times: number[] = [];
  let next = 0;
  const one: Seller = {
    async sell() {
      for (let sale = sales[next++]; sale !== undefined; sale = sales[next++]) {
        const start = performance.now();
        await seller.sell(sale);
        times.push(performance.now() - start);
      }
    },
    close() {},
  };
  const none = { key: '', id: 0 };
  const met = await burst(
    one,
    Array.from({ length: callers }, () => none),
  );
  return { ...met, ok: times.length, times };
}
