import { type Contestant, nothing, work } from './contestant.js';

/** No lock at all: what everything else is measured against, and it loses updates. */
export const bareTransaction: Contestant = {
  name: 'bare $transaction',
  waits: 'nowhere',
  shop: 'plain',
  open: ({ prisma }) => ({
    async sell(sale) {
      await prisma.$transaction((tx) => work(tx, sale));
      sale.releases?.();
    },
    close: nothing,
  }),
};
