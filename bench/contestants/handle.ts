import { fencedLock } from '../shipped.js';
import { type Contestant, nothing, work } from './contestant.js';
import { isUnknown, optionsIn } from './with-lock.js';

/** Taken, one transaction under it, released: what a handle costs that is used once. */
export const handle: Contestant = {
  name: '$lock',
  waits: 'redis',
  shop: 'plain',
  open(house) {
    const prisma = house.shop('plain').$extends(fencedLock({ redis: house.redis }));
    const options = optionsIn(house);
    return {
      async sell(sale) {
        const lock = await prisma.$lock(sale.key, options);
        try {
          await lock.$transaction((tx) => work(tx, sale));
        } finally {
          sale.releases?.();
          await lock.release();
        }
      },
      isUnknown,
      close: nothing,
    };
  },
};
