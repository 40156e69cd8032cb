import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admitByHand, tokensOf } from '../../support/admit-by-hand.js';
import { guardSql } from '../../support/fence-world.js';
import {
  moveClock,
  type PostgresServer,
  startPostgres,
  wallClock,
  wallClocksUnavailable,
} from '../../support/servers/index.js';
import { setUpShop } from '../../support/shop-database.js';

const HOUR = 3_600_000;
const ID = '00000000-0000-4000-8000-000000000000';

/** How a transaction gets its right to write. A handle has the token of an earlier admission. */
const RIGHTS: Readonly<Record<string, (token: string) => string>> = {
  'an admission of one key': () =>
    `SELECT fenced_lock.admit('a'::text, '${ID}'::uuid, '${ID}'::uuid, 9000, 9000, 9000, NULL::integer)`,
  'an admission of several keys': () => admitByHand({ keys: ['a', 'b'] }),
  'the admission of a handle': (token) => admitByHand({ keys: ['a'], tokens: [token] }),
  'the override of an administrator': () => "SELECT fenced_lock.override('ticket 7')",
};

describe('where the clock of Postgres is set back behind BEGIN, the guard under `prove` takes', () => {
  const unavailable = wallClocksUnavailable();
  if (unavailable !== undefined) {
    test.skip(unavailable, () => {});
    return;
  }
  let postgres: PostgresServer;
  let holder: pg.Client;
  beforeAll(async () => {
    postgres = await startPostgres({ env: wallClock });
    await setUpShop(postgres);
    holder = new pg.Client({ connectionString: postgres.url });
    await holder.connect();
    await holder.query(`CREATE TABLE proved (id int, fence bigint NOT NULL DEFAULT 0);
      ${guardSql('proved', 'fence', 'prove')}`);
  });
  afterAll(async () => {
    await holder?.end();
    await postgres?.stop();
  });

  test.each(Object.entries(RIGHTS))('%s', async (_, right) => {
    const { rows } = await holder.query<{ answer: string }>(admitByHand({ keys: ['a'] }));
    const [token = ''] = tokensOf(rows[0]?.answer ?? '');
    await holder.query('BEGIN');
    moveClock(postgres, -HOUR);
    try {
      await holder.query(right(token));
      expect((await holder.query('INSERT INTO proved VALUES (1)')).rowCount).toBe(1);
    } finally {
      moveClock(postgres, 0);
      await holder.query('ROLLBACK');
    }
  });
});
