import type { ClusterClient, RedisClient, RedisSubscriberClient } from '../client.js';
import { presentable } from '../errors.js';
import { handleAsking, isClosedByOwner, Reconnector } from '../ioredis-bugs.js';
import { listen } from '../shared-listeners.js';
import { warnOfFailure } from './connect-failures.js';
import { slotOf } from './slot.js';

/** Statuses of a client that is making its first connection. */
const FIRST_CONNECTION = ['wait', 'connecting', 'connect'];

/** The servers behind a client, and which of them has which name. */
export abstract class Nodes<Client extends RedisClient | ClusterClient = RedisClient | ClusterClient> {
  /** The commands for wake-ups on these servers: `sharded` are SSUBSCRIBE and SPUBLISH. */
  abstract readonly pubsub: 'sharded' | 'classic';
  /** How often a connection for wake-ups is pinged; milliseconds. */
  abstract readonly pingEvery: number;
  /** Prefix for channels, so that they are in the same slots as the keys: the prefix that the client adds to keys. */
  abstract readonly channelPrefix: string;
  protected readonly redis: Client;
  /** What removes the listeners from the client. */
  protected readonly ends: Array<() => void>;
  #failure: Error | undefined;

  constructor(redis: Client) {
    this.redis = redis;
    const emitter = redis as RedisClient;
    this.ends = [
      // With this listener, ioredis does not print the errors as unhandled, each try anew. One warning replaces them.
      listen(emitter, 'error', (error) => {
        this.#failure = presentable(error);
        // All stores of a client share one listener.
        if (emitter.listenerCount?.('error') === 1) warnOfFailure(redis, this.#failure);
      }),
      listen(emitter, 'ready', () => {
        this.#failure = undefined;
      }),
    ];
  }

  /** The error of the last connect, if it failed. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** A possible reason why a server does not answer, beside the client's status; may be empty. */
  get suspicion(): string {
    return this.#failure ? `: ${this.#failure.message}` : '';
  }

  /**
   * Whether the client has ended: its owner has closed it, or its `retryStrategy` has given up. It connects again only if
   * somebody calls its `connect()`.
   */
  abstract get ended(): boolean;
  /** An address of the server that has the name; `undefined` if unknown. */
  abstract addressOf(name: string): string | undefined;
  /** Opens another connection to the server at the address; `undefined` if the server is gone. */
  abstract open(address: string, override: Record<string, unknown>): RedisSubscriberClient | undefined;
  /** Nodes that together have all names. */
  abstract masters(): Promise<readonly Pick<RedisClient, 'scan'>[]>;
  /** Called when the known topology may be outdated. */
  abstract refreshTopology(): void;
  /** Calls the listener when names may have other addresses. Returns the function that removes the listener. */
  abstract onChange(listener: () => void): () => void;
  /**
   * Calls the listener when a server is reachable again, or another server has taken its place. Returns the function
   * that removes the listener.
   */
  abstract onReturn(listener: () => void): () => void;

  /** Removes all listeners from the client. */
  close(): void {
    for (const end of this.ends) end();
  }
}

export function nodesOf(redis: RedisClient | ClusterClient): Nodes {
  return 'isCluster' in redis && redis.isCluster ? new ClusterNodes(redis) : new OneNode(redis as RedisClient);
}

class OneNode extends Nodes<RedisClient> {
  readonly pubsub = 'classic';
  /** A silent connection is replaced within five seconds: the answer may take one. */
  readonly pingEvery = 4_000;
  readonly channelPrefix = '';
  readonly #reconnector: Reconnector | undefined;
  /**
   * How often the client has connected again: each time the address of its URL may lead to another server, while the
   * former one is up.
   */
  #reconnects: number;

  constructor(redis: RedisClient) {
    super(redis);
    this.#reconnects = FIRST_CONNECTION.includes(redis.status) ? -1 : 0;
    this.ends.push(listen(redis, 'ready', () => void this.#reconnects++));
    if (!redis.options?.sentinels) return;
    this.#reconnector = new Reconnector(redis);
    this.ends.push(() => this.#reconnector?.close());
  }

  get ended(): boolean {
    return this.redis.status === 'end';
  }

  override get suspicion(): string {
    const { status, options } = this.redis;
    if (this.failure || !options?.sentinels || options.failoverDetector || status !== 'ready') return super.suspicion;
    return ' (to leave a frozen master after a failover, the client needs its option failoverDetector: true)';
  }

  addressOf(): string {
    return String(Math.max(0, this.#reconnects));
  }

  open(_address: string, override: Record<string, unknown>): RedisSubscriberClient {
    return this.redis.duplicate(override);
  }

  async masters(): Promise<readonly RedisClient[]> {
    return [this.redis];
  }

  refreshTopology(): void {
    this.#reconnector?.reconnect();
  }

  onChange(listener: () => void): () => void {
    return listen(this.redis, 'ready', listener);
  }

  onReturn(listener: () => void): () => void {
    return this.onChange(listener);
  }
}

class ClusterNodes extends Nodes<ClusterClient> {
  readonly pubsub = 'sharded';
  /** A frozen node is replaced within seconds, and its subscribers get no event. */
  readonly pingEvery = 1_000;
  readonly channelPrefix: string;

  constructor(redis: ClusterClient) {
    super(redis);
    this.channelPrefix = redis.options?.keyPrefix ?? '';
    this.ends.push(handleAsking(redis));
  }

  get ended(): boolean {
    const { status } = this.redis;
    // When the last of its nodes closes after the client has ended, ioredis calls it `close` again.
    return status === 'end' || (status === 'close' && isClosedByOwner(this.redis));
  }

  addressOf(name: string): string | undefined {
    return this.redis.slots[slotOf(name)]?.[0];
  }

  open(address: string, override: Record<string, unknown>): RedisSubscriberClient | undefined {
    const node = this.redis.nodes('all').find(({ options }) => `${options.host}:${options.port}` === address);
    return node?.duplicate({ ...override, readOnly: false });
  }

  async masters(): Promise<readonly RedisClient[]> {
    // Before it is connected, a client only knows its start nodes.
    if (this.redis.status !== 'ready') await this.redis.ping();
    return this.redis.nodes('master');
  }

  refreshTopology(): void {
    const { redis } = this;
    // In all other states it is connecting, which reads the topology anyway, or has ended.
    if (redis.status === 'ready') redis.refreshSlotsCache();
    else if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  onChange(listener: () => void): () => void {
    return listen(this.redis, 'refresh', listener);
  }

  onReturn(listener: () => void): () => void {
    const masters = () => [...new Set(this.redis.slots.map((nodes) => nodes?.[0]))].join();
    let before = masters();
    return this.onChange(() => {
      const now = masters();
      if (now !== before) listener();
      before = now;
    });
  }
}
