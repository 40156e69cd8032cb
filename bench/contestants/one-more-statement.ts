import { type Contestant, nothing, work } from './contestant.js';

/** The bare transaction, and the least that can be asked beside: what one statement more costs, whatever it is. */
export const oneMoreStatement: Contestant = {
  name: 'bare + SELECT 1',
  waits: 'nowhere',
  shop: 'plain',
  open: ({ prisma }) => ({
    sell: (sale) =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 AS one`;
        await work(tx, sale);
      }),
    close: nothing,
  }),
};
