import { now, OVERDUE, within } from '../../base/clock.js';
import { HEALTH } from '../../database/sql.js';
import { OBJECTS_VERSION } from './assets.generated.js';
import type { Finding, Health } from './source.js';

/** How long a server may take to answer; milliseconds. */
const WITHIN = 3_000;
const UNREACHED = 'Check the server and the way to it.';
const AWAY = ['close', 'reconnecting', 'end'];

interface Postgres {
  readonly version: string;
  readonly standby: boolean;
  readonly comment: string | null;
  readonly database: string;
  /** `null` if the session came over a Unix socket. */
  readonly host: string | null;
  readonly port: number | null;
}

/** The checks of `fenced-lock doctor` whose results can change while an application runs. */
export async function postgresHealth(
  query: (text: string, values: readonly unknown[]) => Promise<readonly object[]>,
): Promise<Health> {
  const { problem, took, answer } = await asked(() => query(HEALTH, []));
  if (answer === undefined) {
    return { findings: [fault('postgres', 'connection', `Postgres cannot be asked: ${problem}.`, UNREACHED)] };
  }
  const { version, standby, comment, ...place } = answer[0] as Postgres;
  const major = Math.floor(Number(version) / 10_000);
  const findings = [ok('postgres', 'connection', `PostgreSQL ${major} answers in ${took}.`)];
  if (standby) {
    findings.push(fault('postgres', 'writable', 'This server is a standby: it only reads.', 'Connect to the primary.'));
  }
  return { findings: [...findings, objects(comment)], database: shownPlace(place) };
}

/** Postgres itself says which database it is, because a Prisma client does not tell its URL. */
export function shownPlace({ database, host, port }: Pick<Postgres, 'database' | 'host' | 'port'>): string {
  if (host === null) return `Unix socket/${database}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
}

function objects(comment: string | null): Finding {
  const installed = / objects (\d+)$/.exec(comment ?? '')?.[1];
  const is = `The objects of fenced_lock have version ${installed}`;
  if (Number(installed) >= OBJECTS_VERSION) return ok('postgres', 'objects', `${is}.`);
  const [message, command] =
    installed === undefined
      ? ['The schema fenced_lock is not in this database.', 'init']
      : [`${is}, and this package needs ${OBJECTS_VERSION}.`, 'upgrade'];
  return fault('postgres', 'objects', message, `npx fenced-lock ${command}, then npx prisma migrate deploy`);
}

/** Of one server. `status`: as its client says. */
export async function redisHealth(address: string, status: string, ping: () => Promise<unknown>): Promise<Finding> {
  // A client without a connection is not asked: it would keep the command in its queue.
  if (AWAY.includes(status)) {
    return fault('redis', 'connection', `Redis at ${address} is not connected (${status}).`, UNREACHED);
  }
  const { problem, took } = await asked(ping);
  // A user without the right to PING gets this answer from a server that is well.
  if (problem !== undefined && !problem.startsWith('NOPERM')) {
    return fault('redis', 'connection', `Redis at ${address} cannot be asked: ${problem}.`, UNREACHED);
  }
  return ok('redis', 'connection', `Redis at ${address} answers in ${took}.`);
}

async function asked<T>(ask: () => Promise<T>): Promise<{ problem?: string; answer?: T; took: string }> {
  const since = now();
  const took = () => `${(now() - since).toFixed(1)} ms`;
  try {
    const answer = await within(ask(), WITHIN);
    if (answer === OVERDUE) return { problem: `it did not answer within ${WITHIN / 1_000} s`, took: took() };
    return { answer, took: took() };
  } catch (error) {
    return { problem: brief(error), took: took() };
  }
}

function ok(server: Finding['server'], check: string, message: string): Finding {
  return { server, check, status: 'ok', message };
}

function fault(server: Finding['server'], check: string, message: string, remedy: string): Finding {
  return { server, check, status: 'fault', message, remedy };
}

/** The first line of an error's message, without its full stop and without the link to the documentation. */
export function brief(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.split('\n').find((line) => line.trim() !== '') ?? 'unknown';
  return line
    .trim()
    .replace(/ \(see \S*docs\/\S+\)$/, '')
    .replace(/\.$/, '');
}
