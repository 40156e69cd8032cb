import type { ClientTransactionOptions, Database, Place, Query, Row } from '../database/database.js';
import type { PgPool, PgResult } from './pg.js';
import { PgConnection } from './pg-connection.js';
import { PooledConnection } from './pooled-connection.js';

/** What the work does to the database: statements over its one connection. */
export interface PlainTx {
  query(statement: { readonly text: string; readonly values?: unknown[] }): Promise<PgResult>;
}

interface ErrorOfPg {
  readonly code?: string;
  readonly severity?: string;
  readonly detail?: string;
  readonly message?: string;
}

const ofPg = (error: unknown) => (error ?? {}) as ErrorOfPg;

/** The port to a database over a bare pool of pg, without Prisma. */
export function poolDatabase(pool: object, rescue: Query): Database<PlainTx> {
  const from = pool as PgPool;
  return {
    rescue,
    sqlState: (error) => (ofPg(error).severity === undefined ? undefined : ofPg(error).code),
    sqlDetail: (error) => ofPg(error).detail,
    isStatementError: (error) => ofPg(error).severity === 'ERROR',
    isNoMatch: () => false,
    isUnavailable: (error) => ofPg(error).code === 'ECONNREFUSED',
    isDisconnect: (error) => /Connection terminated|is not queryable/.test(ofPg(error).message ?? ''),
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

/** Statements over any connection of the pool. */
export function queryOver(pool: {
  query(text: string, values: unknown[]): Promise<{ rows: readonly object[] }>;
}): Query {
  return async (text, values) => (await pool.query(text, [...values])).rows as readonly Row[];
}

async function connect(pool: PgPool, over: PgConnection | undefined): Promise<PgConnection> {
  return over ?? new PgConnection(new PooledConnection(await pool.connect(), pool));
}
