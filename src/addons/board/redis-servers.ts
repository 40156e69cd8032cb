import { redisHealth } from './health.js';
import type { Finding, ServerState } from './source.js';

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

/** The servers of Redis behind the clients of a lock, and which of them have not answered. */
export class RedisServersSeen {
  readonly #clients: readonly RedisClientSeen[];
  /** A client stays `ready` while its server is frozen, so what it says of itself is not enough. */
  readonly #silent = new WeakSet<RedisClientSeen>();

  constructor(clients: readonly RedisClientSeen[]) {
    this.#clients = clients;
  }

  /** Asks each server, and each master of a Cluster. */
  async health(): Promise<Finding[]> {
    const asked = this.#clients.flatMap((client) => {
      const masters = client.isCluster ? (client.nodes?.('master') ?? []) : [];
      // A node without a connection is not in use yet.
      const connected = masters.filter(({ status }) => status !== 'wait');
      return connected.length > 0 ? connected : [client];
    });
    return await Promise.all(
      asked.map(async (client) => {
        const found = await redisHealth(addressOf(client), client.status, () => client.ping());
        if (found.status === 'ok') this.#silent.delete(client);
        else this.#silent.add(client);
        return found;
      }),
    );
  }

  /** As their clients know them, and as they have answered. */
  get states(): ServerState[] {
    const count = this.#clients.length;
    return this.#clients.flatMap((client, index) => {
      const { options, nodes, isCluster } = client;
      if (options?.sentinels) return [this.#stateOf(client, `master of ${options.name}, by Sentinel`)];
      if (!isCluster || !nodes) {
        return [this.#stateOf(client, count > 1 ? `node ${index + 1} of ${count}` : 'server')];
      }
      const masters = client.nodes?.('master').map((node) => this.#stateOf(node, 'master')) ?? [];
      const replicas = client.nodes?.('slave').map((node) => this.#stateOf(node, 'replica')) ?? [];
      // Before the client has reached the Cluster it knows no node.
      return masters.length > 0 ? [...masters, ...replicas] : [this.#stateOf(client, 'Cluster')];
    });
  }

  #stateOf(client: RedisClientSeen, role: string): ServerState {
    const { status } = client;
    const address = addressOf(client);
    if (status === 'ready' && this.#silent.has(client)) return { address, role, status: 'no answer', healthy: false };
    // `wait`: ioredis connects when it sends its first command. To replicas it may never send one.
    return { address, role, status, healthy: status === 'ready' || status === 'wait' };
  }
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
