import { codeOf, messageOf, type Problem } from '../problem.js';
import type { Guarded } from '../project/guarded-tables.js';
import type { PostgresServer } from '../servers/postgres.js';

export type Status = 'ok' | 'warning' | 'fault' | 'skipped';

/** The result of a check. */
export interface Finding {
  readonly status: Status;
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** A finding with its place. */
export interface Reported extends Finding {
  readonly server: 'postgres' | 'redis';
  /** The Redis server, as `host:port`, if it was reached. */
  readonly node?: string;
  readonly check: string;
}

/** A single check. */
export interface Check<Subject> {
  readonly name: string;
  /** Whether a fault ends the checks: the later ones would only repeat it. */
  readonly essential?: boolean;
  look(subject: Subject): Promise<Finding | readonly Finding[]>;
}

/** A model of schema.prisma, and its table as a quoted SQL name. */
export interface ModelTable {
  readonly model: string;
  readonly table: string;
  readonly columns: readonly string[];
  /** The column of its fence; `undefined` for a model without one. */
  readonly fence: string | undefined;
  /** The guard according to the migrations. */
  readonly guard: Guarded | undefined;
}

/** What the checks of the database need. */
export interface PostgresSubject {
  readonly database: PostgresServer;
  /** The application's role; `undefined` for the connected role. */
  readonly role: string | undefined;
  readonly fix: boolean;
  /** Or the reason why there is no schema to compare with. */
  readonly models: readonly ModelTable[] | Problem;
  /** Whether the project has migrations; otherwise its tables come from `prisma db push`. */
  readonly migrates: boolean;
  /** The Postgres schemas that the datasource lists. */
  readonly listed: readonly string[];
  /** The version of this package's objects, their names, and the functions that an application needs. */
  readonly version: number;
  readonly objects: readonly string[];
  readonly forApplications: readonly string[];
  /** The newest migration of the project that creates the objects. */
  readonly migration: string | undefined;
  /** Queries in a read-only transaction with a statement timeout. */
  ask<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

export const ok = (message: string): Finding => ({ status: 'ok', message });
export const warning = (message: string, remedy: string): Finding => ({ status: 'warning', message, remedy });
export const fault = (message: string, remedy: string): Finding => ({ status: 'fault', message, remedy });

/** Runs the checks one after the other. */
export async function run<Subject>(
  server: Reported['server'],
  checks: ReadonlyArray<Check<Subject>>,
  subject: Subject,
): Promise<Reported[]> {
  const all: Reported[] = [];
  for (const { name, essential, look } of checks) {
    const findings = [await look(subject).catch(notSeen)].flat();
    all.push(...findings.map((finding) => ({ server, check: name, ...finding })));
    if (essential && findings.some(({ status }) => status === 'fault')) break;
  }
  return all;
}

/** A check that failed itself is a fault only if the server has failed; a missing right is a warning. */
function notSeen(error: unknown): Finding {
  if (codeOf(error) === '42501') {
    const remedy = 'Give the URL of the role that migrates; --role names the application’s.';
    return warning(`Not checked: ${messageOf(error)}.`, remedy);
  }
  if (codeOf(error) === '57014') {
    return warning('Not checked: it took too long.', 'Run doctor again at a quieter hour.');
  }
  return fault(`The check failed: ${messageOf(error)}.`, 'Correct what the message says, and run doctor again.');
}
