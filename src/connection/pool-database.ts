import { InvalidOptionError } from '../base/errors.js';
import type { Connection, Database, Query, Row } from '../database/database.js';
import { type Begin, OwnTransaction } from './client-transaction.js';
import { isDisconnect, isEnded, isStatementError, isUnavailable, sqlDetail, sqlState } from './errors.js';
import type { PgClient, PgPool } from './pg.js';
import { LEVELS, type PgConnection } from './pg-connection.js';
import { fencePool } from './pool.js';

/** Begins a transaction of a database client on its pool, at an isolation level such as `repeatable read`. */
export type BeginAt<Tx> = (body: Parameters<Begin<Tx>>[0], level: string | undefined) => Promise<void>;

/** The port to a database client that takes its connections from a pool of pg. */
export function poolDatabase<Tx>(pool: PgPool, rescue: Query, begin: BeginAt<Tx>): Database<Tx> {
  fencePool(pool);
  return {
    rescue,
    sqlState,
    sqlDetail,
    isStatementError,
    isNoMatch: () => false,
    isDisconnect,
    isUnavailable,
    isEnded,
    mayBeInsideTransaction: () => false,
    open({ key, evenIfWanted, maxWait, isolationLevel }, { over, connected }) {
      let connection: Connection | undefined;
      const place = {
        over,
        connected: (had: Connection) => {
          connection = had;
          connected(had);
        },
      };
      const level = isolationLevel && LEVELS[isolationLevel]?.toLowerCase();
      const limit = maxWait === undefined ? undefined : { key, maxWait };
      const opened = new OwnTransaction<Tx>(place, evenIfWanted, (body) => begin(body, level), limit);
      return {
        run: (_, body) =>
          opened.run((tx, source) => {
            if (source !== pool) return Promise.reject(elsewhere());
            return body(tx, () => (connection as PgConnection).closeCursors());
          }),
        discard: () => opened.discard(),
      };
    },
  };
}

/** The database client is over another pool, or had its connection before. */
function elsewhere(): InvalidOptionError {
  return new InvalidOptionError(
    'pool',
    'must be the one that the database client takes its connections from: the transaction of the lock began elsewhere.',
  );
}

/** Begins transactions as plain pg does. */
export function plainly(pool: PgPool): BeginAt<PgClient> {
  return async (body) => {
    const connection = await pool.connect();
    try {
      await connection.query('BEGIN');
      await body(connection);
      await connection.query('COMMIT');
    } catch (error) {
      await Promise.resolve(connection.query('ROLLBACK')).catch(() => {});
      throw error;
    } finally {
      connection.release();
    }
  };
}

/** Statements over any connection of the pool. */
export function queryOver(pool: {
  query(text: string, values: unknown[]): Promise<{ rows: readonly object[] }>;
}): Query {
  return async (text, values) => (await pool.query(text, [...values])).rows as readonly Row[];
}
