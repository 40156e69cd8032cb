import type { Guarded } from '../project/history.js';
import { type Database, inTransaction } from '../servers/postgres.js';

/** A fence that schema.prisma says there is. */
export interface ExpectedFence {
  readonly model: string;
  /** Table as SQL has it, quoted. */
  readonly table: string;
  readonly column: string;
  /** The guard that the migrations leave it with. */
  readonly guard: Guarded | undefined;
}

/** What the checks of the database look at. */
export interface PostgresSubject {
  readonly database: Database;
  /** The application's role; `undefined`: the one that is connected. */
  readonly role: string | undefined;
  readonly fix: boolean;
  /** `undefined`: there is no schema here to compare with. */
  readonly fences: readonly ExpectedFence[] | undefined;
  /** The objects that this package brings, their version, and the functions that an application calls. */
  readonly objects: {
    readonly version: number;
    readonly names: readonly string[];
    readonly callable: readonly string[];
  };
  /** Asks in a transaction that writes nothing and does not take for ever. */
  ask<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

const ASK_WITHIN = '30s';

export function asking(database: Database): PostgresSubject['ask'] {
  return (sql, values) =>
    inTransaction(database, 'BEGIN READ ONLY', async () => {
      await database.query(`SET LOCAL statement_timeout = '${ASK_WITHIN}'`);
      return await database.query(sql, values);
    });
}
