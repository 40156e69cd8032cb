import type { Problem } from '../problem.js';
import type { Guarded } from '../project/guarded-tables.js';
import type { PostgresServer } from '../servers/postgres.js';

/** A fence according to schema.prisma. */
export interface ExpectedFence {
  readonly model: string;
  /** The table as a quoted SQL name. */
  readonly table: string;
  readonly column: string;
  /** The guard according to the migrations. */
  readonly guard: Guarded | undefined;
}

/** A model without the field of a fence. */
export interface UnfencedModel {
  readonly model: string;
  /** The table as a quoted SQL name. */
  readonly table: string;
  readonly columns: readonly string[];
}

/** What the checks of the database need. */
export interface PostgresSubject {
  readonly database: PostgresServer;
  /** The application's role; `undefined` for the connected role. */
  readonly role: string | undefined;
  readonly fix: boolean;
  /** The models of the project without the field of a fence. */
  readonly unfenced: readonly UnfencedModel[];
  /** Or the reason why there is no schema to compare with. */
  readonly fences: readonly ExpectedFence[] | Problem;
  /** Whether the project has migrations; otherwise its tables come from `prisma db push`. */
  readonly migrates: boolean;
  /** The Postgres schemas that the datasource lists. */
  readonly listed: readonly string[];
  /** The objects of this package, their version, and the functions that an application needs. */
  readonly objects: {
    readonly version: number;
    readonly names: readonly string[];
    readonly forApplications: readonly string[];
    /** The newest migration of the project that creates them. */
    readonly migration: string | undefined;
  };
  /** Queries in a read-only transaction with a statement timeout. */
  ask<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

const ASK_WITHIN = '30s';

export function asking(database: PostgresServer): PostgresSubject['ask'] {
  return (sql, values) =>
    database.transaction('BEGIN READ ONLY', async (query) => {
      await query(`SET LOCAL statement_timeout = '${ASK_WITHIN}'`);
      return await query(sql, values);
    });
}
