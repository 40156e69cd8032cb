import type { Socket } from 'node:net';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { PgPool } from '../../src/connection/pg.js';
import { PooledConnection } from '../../src/connection/pooled-connection.js';
import { NotRun, type Statement, type StatementResult } from '../../src/database/database.js';

/** Fails in the server once it has been parsed. */
const divide = (by: string): Statement => ({ text: 'SELECT 12 / $1::int', name: 'divide', values: [by] });
const TWELFTH = { rows: [['1']], tag: 'SELECT 1' };

describe('a statement with a name', () => {
  /** A pool of its own, and the names that its connections had parsed, '' for none. */
  function noting(max = 1) {
    const parsed: string[] = [];
    const pool = new pg.Pool({ connectionString: inject('postgres').app, max });
    onTestFinished(() => pool.end());
    pool.on('connect', (client) => {
      const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
      const write = stream.write.bind(stream);
      stream.write = (data) => {
        parsed.push(...namesIn(data as Buffer));
        return write(data);
      };
    });
    const from = pool as unknown as PgPool;
    const line = async () => new PooledConnection(await from.connect(), from);
    /** In a flight of its own, on a connection that goes back behind it. */
    async function ask(statement: Statement): Promise<StatementResult | undefined> {
      const own = await line();
      const [reply] = own.sendFlight([statement]);
      own.returnToPool();
      return await reply?.promise;
    }
    return { pool, parsed, line, ask };
  }

  test('is parsed the first time on each connection, and only bound from then on', async () => {
    const { parsed, line, ask } = noting(2);
    for (let time = 0; time < 3; time++) expect(await ask(divide('12'))).toEqual(TWELFTH);
    expect(parsed).toEqual(['divide']);
    const first = await line();
    expect(await ask(divide('12'))).toEqual(TWELFTH);
    expect(parsed).toEqual(['divide', 'divide']);
    first.returnToPool();
  });

  test('that failed on its first use is parsed again, and its name is not taken', async () => {
    const { parsed, ask } = noting();
    await expect(ask(divide('0'))).rejects.toMatchObject({ code: '22012' });
    expect(await ask(divide('12'))).toEqual(TWELFTH);
    expect(await ask(divide('12'))).toEqual(TWELFTH);
    expect(parsed).toEqual(['divide', 'divide']);
  });

  test('that failed later is known as it was', async () => {
    const { parsed, ask } = noting();
    expect(await ask(divide('12'))).toEqual(TWELFTH);
    await expect(ask(divide('0'))).rejects.toMatchObject({ code: '22012' });
    expect(await ask(divide('12'))).toEqual(TWELFTH);
    expect(parsed).toEqual(['divide']);
  });

  test.each(['DEALLOCATE ALL', 'DISCARD ALL'])(
    'that %s has taken from the server was not run, and from then on goes without a name on all connections',
    async (forget) => {
      const { pool, parsed, ask, line } = noting(2);
      expect(await ask(divide('12'))).toEqual(TWELFTH);
      await pool.query(forget);
      parsed.length = 0;
      await expect(ask(divide('12'))).rejects.toBeInstanceOf(NotRun);
      const first = await line();
      expect(await ask(divide('12'))).toEqual(TWELFTH);
      first.returnToPool();
      expect(await ask(divide('12'))).toEqual(TWELFTH);
      expect(parsed).toEqual(['', '']);
    },
  );

  test('behind one that failed has not been parsed, and is the next time', async () => {
    const { parsed, line, ask } = noting();
    const own = await line();
    const [failed, skipped] = own.sendFlight([{ text: 'SELECT 1 / 0', values: [] }, divide('12')]);
    await expect(failed?.promise).rejects.toMatchObject({ code: '22012' });
    await expect(skipped?.promise).rejects.toMatchObject({ constructor: NotRun, cause: { code: '22012' } });
    own.returnToPool();
    expect(await ask(divide('12'))).toEqual(TWELFTH);
    expect(parsed).toEqual(['', 'divide', 'divide']);
  });

  test('leaves those of another pool their names', async () => {
    const [one, other] = [noting(), noting()];
    await one.ask(divide('12'));
    await one.pool.query('DEALLOCATE ALL');
    await expect(one.ask(divide('12'))).rejects.toBeInstanceOf(NotRun);
    await other.ask(divide('12'));
    await other.ask(divide('12'));
    expect(other.parsed).toEqual(['divide']);
  });
});

/** Of its Parse messages. */
function* namesIn(data: Buffer): Iterable<string> {
  for (let at = 0; at < data.length; at += 1 + data.readInt32BE(at + 1)) {
    if (data[at] === 'P'.charCodeAt(0)) yield data.toString('utf8', at + 5, data.indexOf(0, at + 5));
  }
}
