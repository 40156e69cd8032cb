import { codeOf, messageOf } from '../problem.js';

export type Status = 'ok' | 'warning' | 'fault' | 'skipped';

/** What a check found. */
export interface Finding {
  readonly status: Status;
  readonly message: string;
  /** What to do. */
  readonly remedy?: string;
}

/** A finding, with where it was found. */
export interface Reported extends Finding {
  readonly server: 'postgres' | 'redis';
  /** Of Redis, where one was reached: `host:port`. */
  readonly node?: string;
  readonly check: string;
}

/** One thing to look at. */
export interface Check<Subject> {
  readonly name: string;
  /** With a fault here the checks after it would only repeat it. */
  readonly essential?: boolean;
  look(subject: Subject): Promise<Finding | readonly Finding[]>;
}

export const ok = (message: string): Finding => ({ status: 'ok', message });
export const warning = (message: string, remedy: string): Finding => ({ status: 'warning', message, remedy });
export const fault = (message: string, remedy: string): Finding => ({ status: 'fault', message, remedy });

/** Looks at one thing after the other. */
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

/** A check that could not look has found no fault in what it did not see, unless the server itself is ill. */
function notSeen(error: unknown): Finding {
  switch (codeOf(error)) {
    case '42501':
      return warning(
        `Not looked at: ${messageOf(error)}.`,
        'Give the URL of the role that migrates; --role names the application’s.',
      );
    case '57014':
      return warning('Not looked at: it took too long.', 'Run doctor again at a quieter hour.');
    default:
      return fault(`It could not be looked at: ${messageOf(error)}.`, 'See the message of the server.');
  }
}
