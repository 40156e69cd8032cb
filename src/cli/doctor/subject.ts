import type { Problem } from '../problem.js';
import type { Guarded } from '../project/history.js';
import type { PostgresServer } from '../servers/postgres.js';

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
  readonly database: PostgresServer;
  /** The application's role; `undefined`: the one that is connected. */
  readonly role: string | undefined;
  readonly fix: boolean;
  /** With `fix`: a token that has been drawn, by the word of whoever runs this. */
  readonly upTo: bigint;
  /** Or why there is no schema here to compare with. */
  readonly fences: readonly ExpectedFence[] | Problem;
  /** Whether the project has migrations; otherwise its tables come from `prisma db push`. */
  readonly migrates: boolean;
  /** The objects that this package brings, their version, and the functions that an application needs. */
  readonly objects: {
    readonly version: number;
    readonly names: readonly string[];
    readonly forApplications: readonly string[];
    /** The newest script of the project that makes them. */
    readonly migration: string | undefined;
  };
  /** Asks in a transaction that writes nothing and does not take for ever. */
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
