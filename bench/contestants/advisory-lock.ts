import { type Contestant, nothing, work } from './contestant.js';

export const advisoryLock: Contestant = {
  name: 'advisory lock',
  waits: 'postgres',
  shop: 'plain',
  open: ({ prisma }) => ({
    async sell(sale) {
      await prisma.$transaction(async (tx) => {
        await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${sale.key}, 0))`;
        await work(tx, sale);
      });
      sale.releases?.();
    },
    close: nothing,
  }),
};
