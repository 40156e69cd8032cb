import type { Guard } from '../migrations/guard-sql.js';
import type { Packaged } from '../migrations/packaged.js';
import { codeOf, messageOf, type Problem } from '../problem.js';
import type { Project } from '../project/locate.js';
import type { Way } from '../project/remedies.js';
import type { PostgresServer } from '../servers/postgres.js';

type Status = 'ok' | 'warning' | 'fault' | 'skipped';

/** The result of a check. */
export interface Finding {
  readonly status: Status;
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** A finding with its check. */
export interface Checked extends Finding {
  readonly check: string;
}

/** What a check has found; a sentence, if all is well. */
export type Found = string | Finding | readonly Finding[];

/** Checks by their names, in their order. */
export type Checks<Subject> = Readonly<Record<string, (subject: Subject) => Promise<Found>>>;

/** A fault in one of these ends the checks of a server: the later ones would only repeat it. */
const ESSENTIAL = new Set(['pooler', 'version', 'writable', 'objects', 'sequence', 'role', 'scripts']);

/** A model of the project; without a project, a table that has a guard. */
export interface Compared {
  readonly name: string;
  /** As a quoted SQL name. */
  readonly table: string;
  readonly columns: readonly string[];
  /** The column of the fence; `undefined` if the model has none. */
  readonly fence: string | undefined;
  readonly guard: Guard | undefined;
}

/** What the checks of the database need. */
export interface PostgresSubject {
  readonly database: PostgresServer;
  /** The application's role; `undefined` for the connected role. */
  readonly role: string | undefined;
  readonly fix: boolean;
  /** Or the reason why there is none to compare with. */
  readonly project: Project | Problem;
  readonly models: readonly Compared[];
  readonly way: Way;
  /** This package's objects. */
  readonly packaged: Packaged;
  /** Queries in a read-only transaction with a statement timeout. */
  ask<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

export const ok = (message: string): Finding => ({ status: 'ok', message });
export const warning = (message: string, remedy: string): Finding => ({ status: 'warning', message, remedy });
export const fault = (message: string, remedy: string): Finding => ({ status: 'fault', message, remedy });

/** Runs the checks one after the other. */
export async function run<Subject>(checks: Checks<Subject>, subject: Subject): Promise<Checked[]> {
  const all: Checked[] = [];
  for (const [check, look] of Object.entries(checks)) {
    const found = await look(subject).catch(notSeen);
    const findings = [typeof found === 'string' ? ok(found) : found].flat();
    all.push(...findings.map((finding) => ({ check, ...finding })));
    if (ESSENTIAL.has(check) && findings.some(({ status }) => status === 'fault')) break;
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
