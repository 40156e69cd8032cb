import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { Context } from '../../src/cli/context.js';
import { raiseToken, serverTime } from '../../src/cli/locks/raise-token.js';
import { connectPostgres, type PostgresServer } from '../../src/cli/servers/postgres.js';
import { END_BLOCKERS } from '../../src/database/sql.js';
import { admitByHand } from '../support/admit-by-hand.js';
import { describeWithShop, gate } from '../support/shop.js';

describeWithShop('a key that is taken from the holder that was found', () => {
  const silent = { write: () => {} };
  const context = () =>
    new Context({ cwd: '.', env: {}, now: () => new Date(), stdout: silent, stderr: silent }, false);

  async function connect(): Promise<PostgresServer> {
    const server = await connectPostgres(context(), inject('postgres').app);
    onTestFinished(() => server.close());
    return server;
  }

  /** A holder in its transaction. */
  async function holder(key: string) {
    const session = new pg.Client({ connectionString: inject('postgres').app });
    session.on('error', () => {});
    await session.connect();
    onTestFinished(() => session.end().catch(() => {}));
    const { rows } = await session.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await session.query('BEGIN');
    await session.query(admitByHand({ keys: [key], leaseTime: 60_000, workTime: 60_000, waitTime: 10_000 }));
    return { pid: rows[0]?.pid, commit: async () => (await session.query('COMMIT')).command };
  }

  /** A connection that says when it has been asked to end who is in the way, and has answered. */
  function telling(aside: PostgresServer, asked: () => void): PostgresServer {
    const query: PostgresServer['query'] = async (sql, values) => {
      const rows = await aside.query(sql, values);
      if (sql === END_BLOCKERS) asked();
      return rows as never;
    };
    return { ...aside, query };
  }

  test('is waited for while a later holder has it, whose transaction commits', async () => {
    const key = `raise:${randomUUID()}`;
    const [database, aside] = [await connect(), await connect()];
    const found = await holder(key);
    const foundAt = await serverTime(database);
    expect(await found.commit()).toBe('COMMIT');
    const later = await holder(key);
    const asked = gate();
    const raised = raiseToken(database, telling(aside, asked.open), key, foundAt);
    await asked.opened;
    expect(await later.commit()).toBe('COMMIT');
    expect(await raised).toMatchObject({ ended: [], before: expect.any(String) });
  });

  test('is taken from a later holder, too, that stays', async () => {
    const key = `raise:${randomUUID()}`;
    const [database, aside] = [await connect(), await connect()];
    const foundAt = await serverTime(database);
    const later = await holder(key);
    expect((await raiseToken(database, aside, key, foundAt)).ended).toEqual([later.pid]);
    await expect(later.commit()).rejects.toThrow();
  });

  test('is taken from the one that was found at the first look', async () => {
    const key = `raise:${randomUUID()}`;
    const [database, aside] = [await connect(), await connect()];
    const found = await holder(key);
    const asked = gate();
    const raised = raiseToken(database, telling(aside, asked.open), key, await serverTime(database));
    await asked.opened;
    await expect(found.commit()).rejects.toThrow();
    expect((await raised).ended).toEqual([found.pid]);
  });
});
