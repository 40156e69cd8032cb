import type pg from 'pg';
import type { PgPool, PgResult } from '../../src/connection/pg.js';
import { PgConnection } from '../../src/connection/pg-connection.js';
import { PooledConnection } from '../../src/connection/pooled-connection.js';
import type { ClientTransactionOptions, Database, Place } from '../../src/database/database.js';

/** What the work does to the database: statements over its one connection. */
export interface PlainTx {
  query(statement: { readonly text: string; readonly values?: unknown[] }): Promise<PgResult>;
}

/** The transactions of a bare pool of pg, as the fence needs them. */
export function plainDatabase(pool: pg.Pool, rescue: pg.Pool): Database<PlainTx> {
  const from = pool as unknown as PgPool;
  const detailOf = (error: unknown) => (error ?? {}) as Partial<pg.DatabaseError>;
  return {
    rescue: async (text, values) => (await rescue.query<Record<string, unknown>>(text, [...values])).rows,
    sqlState: (error) => (detailOf(error).severity === undefined ? undefined : detailOf(error).code),
    sqlDetail: (error) => detailOf(error).detail,
    isStatementError: (error) => (error as { severity?: unknown } | undefined)?.severity === 'ERROR',
    isNoMatch: () => false,
    isUnavailable: (error) => (detailOf(error) as { code?: string }).code === 'ECONNREFUSED',
    isDisconnect: (error) => /Connection terminated|is not queryable/.test(detailOf(error).message ?? ''),
    open(_: ClientTransactionOptions, { over, connected }: Place) {
      const had = connect(from, over as PgConnection | undefined).then((connection) => {
        connected(connection);
        return connection;
      });
      had.catch(() => {});
      return {
        async run(_, body) {
          const { facade } = await had;
          try {
            await body(facade as PlainTx, () => {}).catch(async (error: unknown) => {
              await facade.query('ROLLBACK');
              throw error;
            });
            await facade.query('COMMIT');
          } finally {
            facade.release();
          }
        },
        discard: () => had.then((connection) => connection.abandon()),
      };
    },
  };
}

async function connect(pool: PgPool, over: PgConnection | undefined): Promise<PgConnection> {
  return over ?? new PgConnection(new PooledConnection(await pool.connect(), pool));
}
