import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { proxied } from '../support/proxied.js';
import { describeWithShop, Shop } from '../support/shop.js';

/** What pg calls on a query that it was given as an object. */
interface Flight {
  handleCommandComplete?(message: { text: string }, ...more: unknown[]): void;
  handleError(error: unknown): void;
}

/** Connections whose server goes down when it has committed, and says so instead of the answer. */
function goingDown(code: string, onCommit: () => void): typeof pg.Client {
  class GoingDown extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      const ask = this.query.bind(this) as unknown as (flight: Flight) => unknown;
      const query = (flight: Flight) => {
        const complete = flight.handleCommandComplete?.bind(flight);
        if (complete === undefined) return ask(flight);
        const down = Object.assign(new pg.DatabaseError('going down', 0, 'error'), { code, severity: 'FATAL' });
        return ask(
          Object.assign(flight, {
            handleCommandComplete(...answer: Parameters<typeof complete>) {
              if (answer[0].text !== 'COMMIT') return complete(...answer);
              onCommit();
              flight.handleError(down);
            },
          }),
        );
      };
      Object.defineProperty(this, 'query', { value: query });
    }
  }
  return GoingDown;
}

describeWithShop('an error in answer to COMMIT', () => {
  const shop = new Shop();

  test.each(['57P01', 'XX000'])(
    '%s, which a server also sends when it goes down, tells nothing: the evidence does',
    async (code) => {
      const connectionString = inject('postgres').app;
      let commits = 0;
      const adapter = new PrismaPg(shop.pool({ Client: goingDown(code, () => commits++) }));
      const { prisma } = shop.client({ adapter, rescue: new PrismaPg({ connectionString }) });
      const { id, key } = await shop.product(10);
      const held = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
      await expect(held).resolves.toMatchObject({ quantity: 9 });
      expect((await shop.row(id))?.quantity).toBe(9);
      expect(commits).toBe(1);
    },
  );

  test('that Postgres has ended the session of a silent client: nothing was committed, and the error says so', async () => {
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        proxy.silence('toServer');
      },
      { leaseTime: 1_500 },
    );
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection' });
    expect((await shop.row(id))?.quantity).toBe(10);
    proxy.resume();
  });
});
