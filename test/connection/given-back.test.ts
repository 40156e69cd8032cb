import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { describe, expect, inject, test } from 'vitest';
import { AdapterConnection } from '../../src/connection/adapter-connection.js';
import type { Conductor } from '../../src/database/database.js';
import { fencedLock } from '../../src/index.js';
import { isLoss } from '../../src/prisma/errors.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

const NOWHERE = 'postgresql://nobody@127.0.0.1:1/nothing';

describeWithShop('an adapter without a pool of pg is given back no connection inside of an open transaction', () => {
  const shop = new Shop();
  const lease = { leaseTime: 20_000 };

  /** Two clients on one connection, behind a proxy. Nothing listens where they would have its backend ended. */
  async function world() {
    const { app } = inject('postgres');
    const { hostname, port } = new URL(app);
    const proxy = await startFaultProxy({ host: hostname, port: Number(port) });
    const pool = new pg.Pool({ connectionString: proxy.url(app), max: 1 });
    pool.on('error', () => {});
    const plain = [
      new PrismaClient({ adapter: new PoollessPg(pool) }),
      new PrismaClient({ adapter: new PoollessPg(pool) }),
    ];
    const [holder, bystander] = plain.map((client) =>
      client.$extends(fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString: NOWHERE }) })),
    ) as [ShopClient, ShopClient];
    shop.closeLater(async () => {
      for (const client of plain) await client.$disconnect();
      await pool.end();
      await proxy.close();
    });
    await holder.$withLock('given back', () => {});
    return { proxy, pool, holder, plain: plain[0] as PrismaClient, bystander };
  }

  /** A call of somebody else, who gets the connection next. What it commits is its own. */
  const useNext = (bystander: ShopClient, key: string) =>
    bystander.$withLock(
      `${key}:other`,
      (tx) => tx.ledger.create({ data: { key, token: 1n, before: 1, after: 1, worker: 'bystander' } }),
      {
        ...lease,
        waitTime: 20_000,
        maxWait: 20_000,
      },
    );

  test('when the line is silent during a statement of the work, and the work is over its timeout', async () => {
    const { id, key } = await shop.product(10);
    const { proxy, holder, bystander } = await world();
    const held = holder.$withLock(
      key,
      async (tx) => {
        await tx.stock.findFirst();
        proxy.silence('toClient');
        await tx.stock.update({ where: { id }, data: { quantity: 3 } });
      },
      { ...lease, timeout: 300 },
    );
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    const used = useNext(bystander, key);
    proxy.resume();
    await used;
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('when the line is silent during the admission, and the caller gives up', async () => {
    const { id, key } = await shop.product(10);
    const { proxy, pool, holder, bystander } = await world();
    const signal = new AbortController();
    const sent = gate();
    proxy.onData('toServer', (data) => {
      if (data.toString('latin1').includes('fenced_lock')) {
        sent.open();
        proxy.silence('toClient');
      }
      return 'forward';
    });
    const held = holder.$withLock(key, () => {}, { ...lease, signal: signal.signal });
    const told = expect(held).rejects.toThrow('enough');
    await sent.opened;
    signal.abort(new Error('enough'));
    await told;
    // Longer than a connection may be silent that was given up.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const used = bystander.stock.update({ where: { id }, data: { quantity: 5 } });
    proxy.resume();
    await used;
    await eventually('it is back', async () => pool.idleCount === 1);
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('when the client is disconnected inside of the function', async () => {
    const { id, key } = await shop.product(10);
    const { plain, holder, bystander } = await world();
    const held = holder.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 3 } });
      await plain.$disconnect();
      await tx.stock.findFirst();
    });
    await expect(held).rejects.toThrow();
    await useNext(bystander, key);
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});

describe('the connection of an adapter without a pool of pg', () => {
  const query = (sql: string) => ({ sql, args: [], argTypes: [] });

  /** What becomes of a statement, by its text. */
  function connectionWith(
    executeRaw: (sql: string) => Promise<number>,
    {
      usePhantomQuery = false,
      queryRaw = async () => {},
    }: { usePhantomQuery?: boolean; queryRaw?: () => Promise<unknown> } = {},
  ) {
    const log: string[] = [];
    const connection = new AdapterConnection(
      {
        options: { usePhantomQuery },
        queryRaw: async () => {
          await queryRaw();
          return { columnNames: [], rows: [] };
        },
        executeRaw: ({ sql }) => {
          log.push(sql);
          return executeRaw(sql);
        },
        commit: async () => void log.push('commit'),
        rollback: async () => void log.push('rollback'),
      },
      isLoss,
    );
    return { connection, log };
  }

  test('is given back behind the answer to its ROLLBACK, which is sent once', async () => {
    const answered = gate();
    const { connection, log } = connectionWith(() => answered.opened.then(() => 0));
    connection.destroy();
    connection.destroy();
    expect(log).toEqual(['ROLLBACK']);
    answered.open();
    await expect.poll(() => log).toEqual(['ROLLBACK', 'rollback']);
    await connection.facade.executeRaw(query('ROLLBACK'));
    await connection.facade.rollback();
    expect(log).toEqual(['ROLLBACK', 'rollback']);
  });

  test('is given back if it is gone, and kept from its pool if its ROLLBACK was not answered for another reason', async () => {
    // As pg and as Prisma's adapter tell it.
    const losses = [
      new Error('Connection terminated unexpectedly'),
      Object.assign(new Error('SocketTimeout'), { cause: { kind: 'SocketTimeout' } }),
    ];
    for (const loss of losses) {
      const gone = connectionWith(() => Promise.reject(loss));
      await gone.connection.facade.rollback();
      expect(gone.log).toEqual(['ROLLBACK', 'rollback']);
    }
    const unanswered = connectionWith(() => Promise.reject(new Error('Query read timeout')));
    await expect(unanswered.connection.facade.rollback()).rejects.toThrow('Query read timeout');
    expect(unanswered.log).toEqual(['ROLLBACK']);
  });

  test('leaves ROLLBACK to an adapter that sends it by itself', async () => {
    const { connection, log } = connectionWith(async () => 0, { usePhantomQuery: true });
    await connection.facade.rollback();
    expect(log).toEqual(['rollback']);
  });

  /** As much of a call as a connection asks. */
  const conductor = (commit: () => Promise<never>) =>
    ({ gate: { enter: () => {}, leave: () => {}, failed: (error: unknown) => error }, commit }) as unknown as Conductor;

  test('is given back where the adapter sends COMMIT by itself, and the call refuses to commit', async () => {
    const { connection, log } = connectionWith(async () => 0, { usePhantomQuery: true });
    connection.conductor = conductor(() => Promise.reject(new Error('refused')));
    connection.stage = 'ending';
    await expect(connection.facade.commit()).rejects.toThrow('refused');
    expect(log).toEqual(['rollback']);
  });

  test('sends no COMMIT if it is given back while it looks whether its transaction still stands', async () => {
    const [failed, looked] = [gate(), gate()];
    let statements = 0;
    const queryRaw = async () => {
      if (statements++ === 0) throw new Error('of a statement');
      failed.open();
      await looked.opened;
    };
    const { connection, log } = connectionWith(async () => 0, { queryRaw });
    connection.conductor = conductor(() => Promise.reject(new Error('not asked')));
    connection.stage = 'working';
    await expect(connection.facade.queryRaw(query('SELECT 1'))).rejects.toThrow('of a statement');
    const { answer } = connection.commit();
    await failed.opened;
    connection.destroy();
    looked.open();
    await answer.promise.catch(() => {});
    await expect.poll(() => log).toEqual(['ROLLBACK', 'rollback']);
  });

  test('sends nothing once it is given back: somebody else may have it', async () => {
    const { connection, log } = connectionWith(async () => 0);
    await connection.facade.rollback();
    await expect(connection.query('SELECT 1', [])).rejects.toThrow('given back');
    await expect(connection.commit().answer.promise).rejects.toThrow('given back');
    await expect(connection.facade.queryRaw(query('SELECT 1'))).rejects.toThrow();
    const [answer] = connection.begin({ isolationLevel: undefined, statements: [{ text: 'SELECT 1', values: [] }] });
    await expect(answer?.promise).rejects.toThrow('given back');
    await connection.rollback();
    expect(log).toEqual(['ROLLBACK', 'rollback']);
  });
});
