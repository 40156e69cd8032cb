import { setTimeout as sleep } from 'node:timers/promises';
import { type Contestant, nothing, placeOrder, WAIT_TIME } from './contestant.js';

/** Before the next try, at random up to this, so that those who met do not meet again; ms. */
const LONGEST_PAUSE = 20;

class Conflict extends Error {}

/** A version column, and another try where somebody else was faster. `fence` is its version: nobody else uses its rows. */
export const optimistic: Contestant = {
  name: 'optimistic version',
  waits: 'nowhere',
  shop: 'plain',
  open: ({ prisma }) => ({
    async sell({ id, buyer, began, hasRead, ended, releases }) {
      const giveUp = performance.now() + WAIT_TIME;
      const attempt = () =>
        prisma.$transaction(async (tx) => {
          await began?.();
          const { quantity, fence } = await tx.stock.findUniqueOrThrow({ where: { id } });
          if (hasRead !== undefined) await hasRead();
          const data = { quantity: quantity - 1, fence: fence + 1n };
          const { count } = await tx.stock.updateMany({ where: { id, fence }, data });
          if (count === 0) throw new Conflict('somebody else was faster');
          if (buyer !== undefined) await placeOrder(tx, id, buyer);
          ended?.();
        });
      for (;;) {
        try {
          await attempt();
          return releases?.();
        } catch (error) {
          if (!(error instanceof Conflict) || performance.now() > giveUp) throw error;
        }
        await sleep(Math.random() * LONGEST_PAUSE);
      }
    },
    close: nothing,
  }),
};
