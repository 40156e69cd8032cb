import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop } from '../support/shop.js';

/** What pg's client sends by. */
interface Wire {
  parse(statement: { text: string }): void;
  query(text: string): void;
}

/** Connections that note what is sent. */
function noting(sent: string[]): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      const { connection } = this as unknown as { connection: Wire };
      const [parse, query] = [connection.parse.bind(connection), connection.query.bind(connection)];
      connection.parse = (statement) => {
        sent.push(statement.text);
        parse(statement);
      };
      connection.query = (text) => {
        sent.push(text);
        query(text);
      };
    }
  };
}

describeWithShop('a transaction under a lock', () => {
  const shop = new Shop();

  test('begins with the admission: what came before it would take the snapshot', async () => {
    const sent: string[] = [];
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString, Client: noting(sent) });
    shop.closeLater(() => pool.end());
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    const prisma = plain.$extends(fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString }) }));
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT ${id}::int AS id`);
    // One that was begun beside a slow look is given up with nothing in it, and is not the transaction.
    const begun = sent.lastIndexOf('BEGIN');
    expect(sent.slice(0, begun).filter((statement) => statement !== 'BEGIN' && statement !== 'ROLLBACK')).toEqual([]);
    expect(sent.slice(begun)).toEqual([
      'BEGIN',
      expect.stringContaining('fenced_lock.admit('),
      expect.stringContaining('AS id'),
      'COMMIT',
    ]);
  });
});
