import { InvalidOptionError } from '../base/errors.js';
import { type Observed, observedOf } from '../call/observed.js';
import { postgresHealth, type RedisToAsk, redisHealth } from './health.js';
import { watchProcess } from './process.js';
import type { BoardSource, RedisServerState } from './source.js';

/** A client that is extended by `fencedLock`, as far as its type matters. */
export interface LockingClient {
  readonly $locks: {
    inspect(key: string): Promise<{ readonly holder: string | undefined }>;
    forceRelease(key: string): Promise<boolean>;
  };
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

/** @throws InvalidOptionError where it is no client that is extended by `fencedLock` */
export function sourceOf(prisma: LockingClient): BoardSource {
  const locks = prisma?.$locks;
  const observed = observedOf(locks);
  if (observed === undefined) {
    throw new InvalidOptionError('prisma', 'must be a client that is extended by fencedLock: createBoard(prisma).');
  }
  const clients = observed.redis as unknown as readonly Client[];
  return {
    look: async (recent) => ({ keys: await observed.look(recent) }),
    holderOf: async (key) => (await locks.inspect(key)).holder ?? null,
    forceRelease: (key) => locks.forceRelease(key),
    health: () => health(observed, clients),
    topology: () => clients.flatMap((client, index) => statesOf(client, index, clients.length)),
    process: { callers: () => observed.callers(), watch: watchProcess },
  };
}

async function health(observed: Observed, clients: readonly Client[]) {
  const servers = clients.map(
    (client): RedisToAsk => ({ address: addressOf(client), status: client.status, ping: () => client.ping() }),
  );
  return (await Promise.all([postgresHealth(observed.query), redisHealth(servers)])).flat();
}

function statesOf(client: Client, index: number, count: number): RedisServerState[] {
  if (client.isCluster && client.nodes) {
    const masters = client.nodes('master').map((node) => stateOf(node, 'master'));
    const replicas = client.nodes('slave').map((node) => stateOf(node, 'replica'));
    // A Cluster that has not been reached has told of no node.
    return masters.length > 0 ? [...masters, ...replicas] : [{ ...stateOf(client, 'Cluster') }];
  }
  if (client.options?.sentinels) return [stateOf(client, `master of ${client.options.name}, by Sentinel`)];
  return [stateOf(client, count > 1 ? `node ${index + 1} of ${count}` : 'server')];
}

function stateOf(client: Client, role: string): RedisServerState {
  const { status } = client;
  // The client of a replica, or of one that nothing was asked of yet, connects when it is needed.
  return { address: addressOf(client), role, status, healthy: status === 'ready' || status === 'wait' };
}

/** Neither user nor password: what messages may show. */
function addressOf({ options, stream, isCluster }: Client): string {
  if (isCluster) return 'Cluster';
  if (options?.path) return options.path;
  if (options?.sentinels) {
    return stream?.remoteAddress ? `${stream.remoteAddress}:${stream.remotePort}` : `${options.name}`;
  }
  return `${options?.host ?? 'localhost'}:${options?.port ?? 6379}`;
}
