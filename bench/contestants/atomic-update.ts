import { type Contestant, nothing, placeOrder } from './contestant.js';

/** The database does the arithmetic: the physical ceiling, where the work can be written so. */
export const atomicUpdate: Contestant = {
  name: 'atomic UPDATE',
  waits: 'nowhere',
  shop: 'plain',
  open: ({ prisma }) => ({
    async sell({ id, buyer, began, hasRead, ended, releases }) {
      const oneLess = { where: { id }, data: { quantity: { decrement: 1 } } };
      await began?.();
      if (buyer === undefined) await prisma.stock.updateMany(oneLess);
      else
        await prisma.$transaction(async (tx) => {
          await hasRead?.();
          await tx.stock.updateMany(oneLess);
          await placeOrder(tx, id, buyer);
        });
      ended?.();
      releases?.();
    },
    close: nothing,
  }),
};
