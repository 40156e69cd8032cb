import type { Socket } from 'node:net';
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

/** Connections that note the statements that are sent. */
function noting(sent: string[]): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      const { stream } = (this as unknown as { connection: { stream: Socket } }).connection;
      // Node puts its own `write` back when a socket connects.
      stream.prependListener('connect', () => {
        const write = stream.write.bind(stream);
        const parsed = new Set(['']);
        stream.write = (data) => {
          sent.push(...statementsIn(data as Buffer, parsed));
          return write(data);
        };
      });
    }
  };
}

/** The texts of its Parse and Query messages, and the names of statements that are only bound. */
function* statementsIn(data: Buffer, parsed: Set<string>): Iterable<string> {
  for (let at = 0; at < data.length; at += 1 + data.readInt32BE(at + 1)) {
    // Only the first message of a connection begins with its length, which is short.
    if (data[at] === 0) return;
    const type = String.fromCharCode(data[at] as number);
    const [first = '', second = ''] = data.toString('utf8', at + 5, at + 1 + data.readInt32BE(at + 1)).split('\0');
    if (type === 'P') yield second;
    if (type === 'Q') yield first;
    // The bind that follows a Parse names the same statement.
    if (type === 'P') parsed.add(first);
    else if (type === 'B' && !parsed.delete(second)) yield second;
    parsed.add('');
  }
}

describeWithShop('a transaction under a lock', () => {
  const shop = new Shop();

  test('begins with the admission: what came before it would take the snapshot', async () => {
    const sent: string[] = [];
    const adapter = new PrismaPg(shop.pool({ Client: noting(sent) }));
    const { prisma } = shop.client({ adapter, rescue: new PrismaPg({ connectionString: inject('postgres').app }) });
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT ${id}::int AS id`);
    const admission = expect.stringMatching(/fenced_lock\.admit\(|^fenced_lock [0-9a-f]+$/);
    // One that was begun beside a slow look is given up with nothing in it, and is not the transaction.
    const begun = sent.lastIndexOf('BEGIN');
    if (begun > 0) expect(sent.slice(0, begun)).toEqual(['BEGIN', admission, 'ROLLBACK']);
    const [guards, work] = [expect.stringContaining('fenced_lock.guards('), expect.stringContaining('AS id')];
    expect(sent.slice(begun)).toEqual(['BEGIN', admission, guards, work, 'COMMIT']);
  });
});
