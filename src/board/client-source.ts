import { InvalidOptionError } from '../base/errors.js';
import { type Observed, observedOf } from '../call/observed.js';
import { postgresHealth, type RedisToAsk, redisHealth } from './health.js';
import { DatabasePlace } from './place.js';
import { watchProcess } from './process.js';
import type { BoardSource, BoardTurn, Finding, RedisServerState } from './source.js';

/** A client that is extended by `fencedLock`, as far as its type matters. */
export interface LockingClient {
  readonly $locks: {
    inspect(key: string): Promise<{ readonly holder: string | undefined }>;
    forceRelease(key: string): Promise<boolean>;
    history(key: string): Promise<{ readonly last: readonly Turn[] }>;
  };
}

/** A turn, as `$locks.history` has it. */
interface Turn {
  readonly turn: bigint | undefined;
  readonly token: bigint | undefined;
  readonly admittedAt: Date | undefined;
  readonly duration: number | undefined;
  readonly outcome: string;
  readonly process: string | undefined;
  readonly error: string | undefined;
}

/** An ioredis client, as far as a board looks at it. */
interface Client {
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
  nodes?(role: 'master' | 'slave'): readonly Client[];
  ping(): Promise<unknown>;
}

/** What is shown in place of the servers of Redis with `memoryStore()`. */
const IN_MEMORY: RedisServerState = {
  address: 'memoryStore()',
  role: 'No Redis: leases and queues are in the memory of this process.',
  status: 'in use',
  healthy: true,
};
const MEMORY_IS_WELL: Finding = {
  server: 'redis',
  check: 'connection',
  status: 'ok',
  message: 'Leases are in the memory of this process, without Redis.',
};

/** @throws InvalidOptionError if it is not a client that is extended by `fencedLock` */
export function sourceOf(prisma: LockingClient): BoardSource {
  const locks = prisma?.$locks;
  const observed = observedOf(locks);
  if (observed === undefined) {
    throw new InvalidOptionError('prisma', 'must be a client that is extended by fencedLock: createBoard(prisma).');
  }
  const clients = observed.redis as unknown as readonly Client[];
  const inMemory = clients.length === 0;
  const place = new DatabasePlace(observed.query);
  return {
    async look(recent) {
      // A user of Redis without the right to read them sees the keys all the same.
      const refusals = observed.refusals().catch(() => undefined);
      return { keys: await observed.look(recent), refusals: await refusals };
    },
    holderOf: async (key) => (await locks.inspect(key)).holder ?? null,
    forceRelease: (key) => locks.forceRelease(key),
    history: async (key) => (await locks.history(key)).last.map(shownTurn),
    health: () => health(observed, clients, place),
    database: () => place.shown,
    topology: () =>
      inMemory ? [IN_MEMORY] : clients.flatMap((client, index) => statesOf(client, index, clients.length)),
    inMemory,
    process: { callers: () => observed.callers(), watch: watchProcess },
  };
}

function shownTurn({ turn, token, admittedAt, duration, outcome, process, error }: Turn): BoardTurn {
  return {
    turn: turn === undefined ? null : String(turn),
    token: token === undefined ? null : String(token),
    admittedAt: admittedAt?.toISOString() ?? null,
    duration: duration ?? null,
    outcome,
    process: process ?? null,
    error: error ?? null,
  };
}

async function health(observed: Observed, clients: readonly Client[], place: DatabasePlace) {
  const servers = clients.map(
    (client): RedisToAsk => ({ address: addressOf(client), status: client.status, ping: () => client.ping() }),
  );
  const redis = servers.length === 0 ? [MEMORY_IS_WELL] : redisHealth(servers);
  const [ofPostgres, ofRedis] = await Promise.all([postgresHealth(observed.query), redis]);
  await place.follow(ofPostgres);
  return [...ofPostgres, ...ofRedis];
}

function statesOf(client: Client, index: number, count: number): RedisServerState[] {
  if (client.isCluster && client.nodes) {
    const masters = client.nodes('master').map((node) => stateOf(node, 'master'));
    const replicas = client.nodes('slave').map((node) => stateOf(node, 'replica'));
    // Before the client has reached the Cluster it knows no node.
    return masters.length > 0 ? [...masters, ...replicas] : [{ ...stateOf(client, 'Cluster') }];
  }
  if (client.options?.sentinels) return [stateOf(client, `master of ${client.options.name}, by Sentinel`)];
  return [stateOf(client, count > 1 ? `node ${index + 1} of ${count}` : 'server')];
}

function stateOf(client: Client, role: string): RedisServerState {
  const { status } = client;
  // `wait`: ioredis connects when it sends its first command. To replicas it may never send one.
  return { address: addressOf(client), role, status, healthy: status === 'ready' || status === 'wait' };
}

/** Without user and password, because it is shown. */
function addressOf({ options, stream, isCluster }: Client): string {
  if (isCluster) return 'Cluster';
  if (options?.path) return options.path;
  if (options?.sentinels) {
    return stream?.remoteAddress ? `${stream.remoteAddress}:${stream.remotePort}` : `${options.name}`;
  }
  return `${options?.host ?? 'localhost'}:${options?.port ?? 6379}`;
}
