import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
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

  /**
   * A connection that is asked to end who is in the way only while somebody is: on a busy machine the admission may not have
   * reached the row when the grace period ends. It says when it has answered.
   */
  function telling(aside: PostgresServer, asked: () => void): PostgresServer {
    const isBlocked = async (pid: unknown) => {
      const [row] = await aside.query<{ blocked: boolean }>("SELECT pg_blocking_pids($1::integer) <> '{}' AS blocked", [
        pid,
      ]);
      return row?.blocked === true;
    };
    const query: PostgresServer['query'] = async (sql, values) => {
      if (sql !== END_BLOCKERS) return aside.query(sql, values);
      // The admission waits 500 ms for the row, and then raises the token in another transaction.
      const inTheWay = await vi
        .waitUntil(() => isBlocked(values?.[0]), { timeout: 400, interval: 5 })
        .catch(() => false);
      const rows = await aside.query(sql, values);
      if (inTheWay || rows.length > 0) asked();
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
