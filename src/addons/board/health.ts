import { now, OVERDUE, within } from '../../base/clock.js';
import { HEALTH } from '../../database/sql.js';
import { OBJECTS_VERSION } from './assets.generated.js';
import type { Finding } from './source.js';

/** How long a server may take to answer; milliseconds. */
const WITHIN = 3_000;
const OLDEST = 14;
const AWAY = ['close', 'reconnecting', 'end'];

interface Postgres {
  readonly version: string;
  readonly standby: boolean;
  readonly comment: string | null;
}

/** One server of Redis that may be asked. */
export interface RedisToAsk {
  readonly address: string;
  /** As the client says. A client without a connection is not asked: it would keep the commands in its queue. */
  readonly status: string;
  ping(): Promise<unknown>;
}

/** The checks of `fenced-lock doctor` whose results can change while an application runs. */
export async function postgresHealth(
  query: (text: string, values: readonly unknown[]) => Promise<readonly object[]>,
): Promise<Finding[]> {
  const since = now();
  let row: Postgres | undefined;
  try {
    const rows = await within(query(HEALTH, []), WITHIN);
    if (rows === OVERDUE) throw new Error(`it did not answer within ${WITHIN / 1_000} s`);
    row = rows[0] as Postgres | undefined;
  } catch (error) {
    return [
      fault(
        'postgres',
        'connection',
        `Postgres cannot be asked: ${brief(error)}.`,
        'Check the server and the way to it.',
      ),
    ];
  }
  const took = now() - since;
  const major = Math.floor(Number(row?.version) / 10_000);
  const findings = [ok('postgres', 'connection', `PostgreSQL ${major} answers in ${milliseconds(took)}.`)];
  if (major < OLDEST)
    findings.push(fault('postgres', 'version', `PostgreSQL ${major} is older than ${OLDEST}.`, 'Upgrade the server.'));
  if (row?.standby)
    findings.push(fault('postgres', 'writable', 'This server is a standby: it only reads.', 'Connect to the primary.'));
  return [...findings, objects(row?.comment)];
}

export async function redisHealth(servers: readonly RedisToAsk[]): Promise<Finding[]> {
  return await Promise.all(servers.map(ask));
}

function objects(comment: string | null | undefined): Finding {
  const installed = Number(/ objects (\d+)$/.exec(comment ?? '')?.[1] ?? Number.NaN);
  if (installed === OBJECTS_VERSION)
    return ok('postgres', 'objects', `The objects of fenced_lock have version ${installed}.`);
  if (installed > OBJECTS_VERSION) {
    return {
      server: 'postgres',
      check: 'objects',
      status: 'warning',
      message: `The objects of fenced_lock have version ${installed}, newer than this package's ${OBJECTS_VERSION}.`,
      remedy: 'Update the package.',
    };
  }
  return Number.isNaN(installed)
    ? fault(
        'postgres',
        'objects',
        'The schema fenced_lock is not in this database.',
        'npx fenced-lock init, then npx prisma migrate deploy',
      )
    : fault(
        'postgres',
        'objects',
        `The objects of fenced_lock have version ${installed}, and this package needs ${OBJECTS_VERSION}.`,
        'npx fenced-lock upgrade, then npx prisma migrate deploy',
      );
}

async function ask({ address, status, ping }: RedisToAsk): Promise<Finding> {
  const remedy = 'Check the server and the way to it.';
  if (AWAY.includes(status)) {
    return fault('redis', 'connection', `Redis at ${address} is not connected (${status}).`, remedy);
  }
  const since = now();
  try {
    if ((await within(ping(), WITHIN)) === OVERDUE) throw new Error(`it did not answer within ${WITHIN / 1_000} s`);
  } catch (error) {
    // A user without the right to PING gets this answer from a server that is well.
    if (!/^NOPERM/.test(brief(error))) {
      return fault('redis', 'connection', `Redis at ${address} cannot be asked: ${brief(error)}.`, remedy);
    }
  }
  return ok('redis', 'connection', `Redis at ${address} answers in ${milliseconds(now() - since)}.`);
}

function ok(server: Finding['server'], check: string, message: string): Finding {
  return { server, check, status: 'ok', message };
}

function fault(server: Finding['server'], check: string, message: string, remedy: string): Finding {
  return { server, check, status: 'fault', message, remedy };
}

function milliseconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
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
