import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop } from '../support/shop.js';

type Ask = (...args: unknown[]) => Promise<unknown>;

/** Connections whose server goes down when it has committed, and says so instead of the answer. */
function goingDown(code: string): typeof pg.Client {
  class GoingDown extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      const ask = this.query.bind(this) as unknown as Ask;
      const query: Ask = async (...args) => {
        const answer = await ask(...args);
        const { text } = args[0] as { text?: string };
        if (text !== 'COMMIT') return answer;
        throw Object.assign(new pg.DatabaseError('going down', 0, 'error'), { code, severity: 'FATAL' });
      };
      Object.defineProperty(this, 'query', { value: query });
    }
  }
  return GoingDown;
}

describeWithShop('an error in answer to COMMIT', () => {
  const shop = new Shop();

  test.each(['08006', '53200', '57P01', '58030', 'XX000'])(
    '%s, which a server also sends when it goes down, tells nothing: the evidence does',
    async (code) => {
      const connectionString = inject('postgres').app;
      const pool = new pg.Pool({ connectionString, Client: goingDown(code) });
      shop.closeLater(() => pool.end());
      const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
      const prisma = plain.$extends(fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString }) }));
      const { id, key } = await shop.product(10);
      const held = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
      await expect(held).resolves.toMatchObject({ quantity: 9 });
      expect((await shop.row(id))?.quantity).toBe(9);
    },
  );
});
