import { codeOf, messageOf } from '../problem.js';

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

/**
 * The finding for a check that failed itself. It is a fault only if the server has failed; a missing right is a
 * warning.
 */
function notSeen(error: unknown): Finding {
  switch (codeOf(error)) {
    case '42501':
      return warning(
        `Not checked: ${messageOf(error)}.`,
        'Give the URL of the role that migrates; --role names the application’s.',
      );
    case '57014':
      return warning('Not checked: it took too long.', 'Run doctor again at a quieter hour.');
    default:
      return fault(`The check failed: ${messageOf(error)}.`, 'Correct what the message says, and run doctor again.');
  }
}
