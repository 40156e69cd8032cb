import type { Socket } from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

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
