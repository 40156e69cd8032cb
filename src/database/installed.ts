import { LockUnavailableError, NotInstalledError } from '../base/errors.js';
import type { Database, Query } from './database.js';
import { NOT_INSTALLED } from './sql-states.js';

/** The same query. If the schema or the right to use it is missing, it rejects with an error that says what to do. */
export function whereInstalled(query: Query, { sqlState }: Pick<Database<unknown>, 'sqlState'>): Query {
  return async (text, values) => {
    try {
      return await query(text, values);
    } catch (error) {
      const code = sqlState(error);
      throw code !== undefined && NOT_INSTALLED.has(code) ? new NotInstalledError(error, code) : error;
    }
  };
}

/** The same for a query that only looks: without a usable answer it rejects with LockUnavailableError. */
export function whereAnswered(query: Query, database: Pick<Database<unknown>, 'sqlState'>, key?: string): Query {
  const asked = whereInstalled(query, database);
  return async (text, values) => {
    try {
      return await asked(text, values);
    } catch (error) {
      throw error instanceof NotInstalledError ? error : new LockUnavailableError(key, error, { server: 'Postgres' });
    }
  };
}
