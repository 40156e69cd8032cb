import { type Contestant, nothing } from './contestant.js';

/** The database does the arithmetic: the physical ceiling, where the work can be written so. */
export const atomicUpdate: Contestant = {
  name: 'atomic UPDATE',
  waits: 'nowhere',
  shop: 'plain',
  open: ({ prisma }) => ({
    async sell({ id, began, ended, releases }) {
      await began?.();
      await prisma.stock.updateMany({ where: { id }, data: { quantity: { decrement: 1 } } });
      ended?.();
      releases?.();
    },
    close: nothing,
  }),
};
