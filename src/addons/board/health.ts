import { now, OVERDUE, within } from '../../base/clock.js';
import { HEALTH } from '../../database/sql.js';
import { OBJECTS_VERSION } from './assets.generated.js';
import type { Finding, ServerState } from './source.js';

/** How long a server may take to answer; milliseconds. */
const WITHIN = 3_000;
const UNREACHED = 'Check the server and the way to it.';

interface Postgres {
  readonly version: string;
  readonly standby: boolean;
  readonly comment: string | null;
  readonly database: string;
  /** `null` if the session came over a Unix socket. */
  readonly host: string | null;
  readonly port: number | null;
}

/** The checks of `fenced-lock doctor` whose results can change while an application runs. `known`: the address of before. */
export async function postgresHealth(
  query: (text: string, values: readonly unknown[]) => Promise<readonly object[]>,
  known: string,
): Promise<ServerState> {
  const { problem, took, answer } = await asked(() => query(HEALTH, []));
  const role = 'database';
  if (answer === undefined) {
    const findings = [{ message: `Postgres cannot be asked: ${problem}.`, remedy: UNREACHED }];
    return { address: known, role, status: 'does not answer', healthy: false, findings };
  }
  const { version, standby, comment, ...place } = answer[0] as Postgres;
  const major = Math.floor(Number(version) / 10_000);
  const findings: Finding[] = [{ message: `PostgreSQL ${major} answers in ${took}.` }, objects(comment)];
  if (standby)
    findings.push({ message: 'This server is a standby: it only reads.', remedy: 'Connect to the primary.' });
  return { address: shownPlace(place), role, status: 'answers', healthy: true, findings };
}

/** Postgres itself says which database it is, because a Prisma client does not tell its URL. */
function shownPlace({ database, host, port }: Pick<Postgres, 'database' | 'host' | 'port'>): string {
  if (host === null) return `Unix socket/${database}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
}

function objects(comment: string | null): Finding {
  const installed = / objects (\d+)$/.exec(comment ?? '')?.[1];
  const is = `The objects of fenced_lock have version ${installed}`;
  if (Number(installed) >= OBJECTS_VERSION) return { message: `${is}.` };
  const [message, command] =
    installed === undefined
      ? ['The schema fenced_lock is not in this database.', 'init']
      : [`${is}, and this package needs ${OBJECTS_VERSION}.`, 'upgrade'];
  return { message, remedy: `npx fenced-lock ${command}, then npx prisma migrate deploy` };
}

/** An ioredis client, as far as a board looks at it. */
export interface RedisClientSeen {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options?: {
    readonly host?: string;
    readonly port?: number;
    readonly path?: string | null;
    readonly name?: string | null;
    readonly sentinels?: readonly unknown[] | null;
  };
  readonly stream?: { readonly remoteAddress?: string; readonly remotePort?: number };
  nodes?(role: 'master' | 'slave'): readonly RedisClientSeen[];
  ping(): Promise<unknown>;
}

/** The servers of Redis behind the clients of a lock. */
export async function redisHealth(clients: readonly RedisClientSeen[]): Promise<ServerState[]> {
  const servers = clients.map((client, index) => {
    const { options, isCluster } = client;
    if (options?.sentinels) return [stateOf(client, `master of ${options.name}, by Sentinel`)];
    if (!isCluster) return [stateOf(client, clients.length > 1 ? `node ${index + 1} of ${clients.length}` : 'server')];
    // ioredis connects to a node when it sends its first command (`wait`). To replicas it may never send one.
    const masters = client.nodes?.('master').map((node) => stateOf(node, 'master', node.status !== 'wait')) ?? [];
    const replicas = client.nodes?.('slave').map((node) => stateOf(node, 'replica', false)) ?? [];
    // Before the client has reached the Cluster it knows no node.
    return masters.length > 0 ? [...masters, ...replicas] : [stateOf(client, 'Cluster')];
  });
  return await Promise.all(servers.flat());
}

async function stateOf(client: RedisClientSeen, role: string, isAsked = true): Promise<ServerState> {
  const { status } = client;
  const address = addressOf(client);
  if (!isAsked) return { address, role, status, healthy: status === 'ready' || status === 'wait', findings: [] };
  const ill = (status: string, is: string) => {
    const findings = [{ message: `Redis at ${address} ${is}.`, remedy: UNREACHED }];
    return { address, role, status, healthy: false, findings };
  };
  // A client without a connection is not asked: it would keep the command in its queue.
  if (['close', 'reconnecting', 'end'].includes(status)) return ill(status, `is not connected (${status})`);
  const { problem, took } = await asked(() => client.ping());
  // A user without the right to PING gets this answer from a server that is well.
  if (problem !== undefined && !problem.startsWith('NOPERM')) {
    // A client stays `ready` while its server is frozen.
    return ill(client.status === 'ready' ? 'no answer' : client.status, `cannot be asked: ${problem}`);
  }
  const findings = [{ message: `Redis at ${address} answers in ${took}.` }];
  return { address, role, status: client.status, healthy: true, findings };
}

/** Without user and password, because it is shown. */
function addressOf({ options, stream, isCluster }: RedisClientSeen): string {
  if (isCluster) return 'Cluster';
  if (options?.path) return options.path;
  if (options?.sentinels) {
    return stream?.remoteAddress ? `${stream.remoteAddress}:${stream.remotePort}` : `${options.name}`;
  }
  return `${options?.host ?? 'localhost'}:${options?.port ?? 6379}`;
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

/** The first line of an error's message, without its full stop and without the link to the documentation. */
export function brief(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.split('\n').find((line) => line.trim() !== '') ?? 'unknown';
  return line
    .trim()
    .replace(/ \(see \S*docs\/\S+\)$/, '')
    .replace(/\.$/, '');
}
