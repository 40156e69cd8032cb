import pg from 'pg';
import { afterAll, describe, expect, inject, test } from 'vitest';
import type { PgPool } from '../../src/connection/pg.js';
import { PooledConnection } from '../../src/connection/pooled-connection.js';
import { NotRun, type Statement } from '../../src/database/database.js';
import { eventually } from '../support/eventually.js';

const statement = (text: string) => ({ text, values: [] });

/** Each as a promise. */
const fly = (own: PooledConnection, statements: readonly Statement[]) =>
  own.sendFlight(statements).map(({ promise }) => promise);

describe('a connection of the pool, in the hands of locks', () => {
  const pool = new pg.Pool({ connectionString: inject('postgres').admin, max: 1 });
  afterAll(() => pool.end());

  async function line(): Promise<PooledConnection> {
    const from = pool as unknown as PgPool;
    return new PooledConnection(await from.connect(), from);
  }

  const pidOf = async () => (await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;

  test('answers the statements of a flight one by one, each with its rows and its tag', async () => {
    const own = await line();
    const flight = fly(own, [
      statement('BEGIN'),
      statement('SELECT 1, NULL'),
      statement('SELECT 2'),
      statement('COMMIT'),
    ]);
    expect(await Promise.all(flight)).toEqual([
      { rows: [], tag: 'BEGIN' },
      { rows: [['1', null]], tag: 'SELECT 1' },
      { rows: [['2']], tag: 'SELECT 1' },
      { rows: [], tag: 'COMMIT' },
    ]);
    own.returnToPool();
  });

  test('runs nothing behind a statement that failed, which might be its BEGIN', async () => {
    await pool.query('CREATE TEMP TABLE written (id int)');
    const own = await line();
    const [begin, insert] = fly(own, [
      statement('BEGIN ISOLATION LEVEL NONE'),
      statement('INSERT INTO written VALUES (1)'),
    ]);
    await expect(begin).rejects.toMatchObject({ code: '42601' });
    await expect(insert).rejects.toBeInstanceOf(NotRun);
    own.returnToPool();
    expect((await pool.query('SELECT * FROM written')).rows).toEqual([]);
  });

  test('sends one statement at a time: the server refuses a text with several', async () => {
    const own = await line();
    await expect(own.send({ text: 'SELECT 1; SELECT 2' })).rejects.toMatchObject({ code: '42601' });
    expect((await own.send({ text: 'SELECT 1 AS one' })).rows).toEqual([{ one: 1 }]);
    own.returnToPool();
  });

  test('goes back to the pool as it came', async () => {
    const before = await pidOf();
    const own = await line();
    await Promise.all(fly(own, [statement('BEGIN'), statement('ROLLBACK')]));
    own.returnToPool();
    expect(await pidOf()).toBe(before);
  });

  test('goes back when what is in flight is answered, and not before', async () => {
    const own = await line();
    const [slept] = fly(own, [statement('SELECT pg_sleep(0.1)')]);
    own.returnToPool();
    expect(pool.idleCount).toBe(0);
    await slept;
    await eventually('it is back', async () => pool.idleCount === 1);
  });

  test.each([
    ['open', ['BEGIN', 'SELECT 1']],
    ['failed', ['BEGIN', 'SELECT 1 / 0']],
  ])('never goes back inside a transaction that is %s: the next user would be in it', async (_, texts) => {
    const before = await pidOf();
    const own = await line();
    await Promise.allSettled(fly(own, texts.map(statement)));
    own.returnToPool();
    expect(await pidOf()).not.toBe(before);
  });
});
