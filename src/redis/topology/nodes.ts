import type { ClusterClient, RedisClient, RedisSubscriberClient } from '../client.js';
import { listen } from '../shared-listeners.js';
import type { PubSub } from '../subscriber/subscriber-connection.js';
import { handleAsking } from './asking.js';
import { ConnectFailures } from './connect-failures.js';
import { Reconnector } from './reconnector.js';
import { slotOf } from './slot.js';

/** Statuses of a client that is making its first connection. */
const FIRST_CONNECTION = ['wait', 'connecting', 'connect'];

/** The servers behind a client, and which of them has which name. */
export interface Nodes {
  /** The commands for wake-ups on these servers. */
  readonly pubsub: PubSub;
  /** How often a connection for wake-ups is pinged; milliseconds. */
  readonly pingEvery: number;
  /**
   * Whether the client has ended: its owner has closed it, or its `retryStrategy` has given up. It connects again only if
   * somebody calls its `connect()`.
   */
  readonly ended: boolean;
  /** The error of the last failed connect. */
  readonly failure: Error | undefined;
  /** A possible reason why a server does not answer, beside the client's status; may be empty. */
  readonly suspicion: string;
  /** Prefix for channels, so that they are in the same slots as the keys: the prefix that the client adds to keys. */
  readonly channelPrefix: string;
  /** The address of the server that has the name; `undefined` if unknown. */
  addressOf(name: string): string | undefined;
  /** Names of one group may be used in one pipeline. */
  groupOf(name: string): string;
  /** Opens another connection to the server at the address; `undefined` if the server is gone. */
  open(address: string, override: Record<string, unknown>): RedisSubscriberClient | undefined;
  /** Nodes that together have all names. */
  masters(): Promise<readonly Pick<RedisClient, 'scan'>[]>;
  /** Called when the known topology may be outdated. */
  refreshTopology(): void;
  /** Calls the listener when names may have moved. Returns the function that removes the listener. */
  onChange(listener: () => void): () => void;
  /**
   * Calls the listener when the client has connected again to the same address, where another server may be now. Returns
   * the function that removes the listener.
   */
  onReconnect(listener: () => void): () => void;
  /**
   * Calls the listener when a server is reachable again, or another server has taken its place. Returns the function
   * that removes the listener.
   */
  onReturn(listener: () => void): () => void;
  /** Removes all listeners from the client. */
  close(): void;
}

export function nodesOf(redis: RedisClient | ClusterClient): Nodes {
  return 'isCluster' in redis && redis.isCluster ? new ClusterNodes(redis) : new OneNode(redis as RedisClient);
}

class OneNode implements Nodes {
  readonly pubsub = 'classic';
  /** A silent connection is replaced within five seconds: the answer may take one. */
  readonly pingEvery = 4_000;
  readonly channelPrefix = '';
  readonly #redis: RedisClient;
  readonly #reconnector: Reconnector | undefined;
  readonly #connectFailures: ConnectFailures;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#connectFailures = new ConnectFailures(redis);
    if (redis.options?.sentinels) this.#reconnector = new Reconnector(redis);
  }

  get ended(): boolean {
    return this.#redis.status === 'end';
  }

  get failure(): Error | undefined {
    return this.#connectFailures.last;
  }

  get suspicion(): string {
    const { status, options } = this.#redis;
    if (this.failure) return `: ${this.failure.message}`;
    if (!options?.sentinels || options.failoverDetector || status !== 'ready') return '';
    return ' (to leave a frozen master after a failover, the client needs its option failoverDetector: true)';
  }

  addressOf(): string {
    return '';
  }

  groupOf(): string {
    return '';
  }

  open(_address: string, override: Record<string, unknown>): RedisSubscriberClient {
    return this.#redis.duplicate(override);
  }

  async masters(): Promise<readonly RedisClient[]> {
    return [this.#redis];
  }

  refreshTopology(): void {
    this.#reconnector?.reconnect();
  }

  onChange(): () => void {
    return () => {};
  }

  onReconnect(listener: () => void): () => void {
    let isFirst = FIRST_CONNECTION.includes(this.#redis.status);
    return listen(this.#redis, 'ready', () => {
      if (!isFirst) listener();
      isFirst = false;
    });
  }

  onReturn(listener: () => void): () => void {
    return listen(this.#redis, 'ready', listener);
  }

  close(): void {
    this.#reconnector?.close();
    this.#connectFailures.close();
  }
}

class ClusterNodes implements Nodes {
  readonly pubsub = 'sharded';
  /** A frozen node is replaced within seconds, and its subscribers get no event. */
  readonly pingEvery = 1_000;
  readonly channelPrefix: string;
  readonly #redis: ClusterClient;
  readonly #connectFailures: ConnectFailures;
  readonly #ends: ReadonlyArray<() => void>;
  #hasEnded = false;

  constructor(redis: ClusterClient) {
    this.#redis = redis;
    this.channelPrefix = redis.options?.keyPrefix ?? '';
    this.#connectFailures = new ConnectFailures(redis);
    const remember = (hasEnded: boolean) => () => {
      this.#hasEnded = hasEnded;
    };
    this.#ends = [
      listen(redis, 'end', remember(true)),
      listen(redis, 'connecting', remember(false)),
      handleAsking(redis),
    ];
  }

  get ended(): boolean {
    // `manuallyClosing` is a private field of ioredis, set by a `disconnect` or `quit` of the owner until the client is
    // connected again. It also tells of an end before this store was opened.
    const { status, manuallyClosing } = this.#redis as { readonly status: string; readonly manuallyClosing?: boolean };
    // When the last of its nodes closes after the client has ended, ioredis 5 and 6 call it `close` again.
    return status === 'end' || (status === 'close' && (this.#hasEnded || manuallyClosing === true));
  }

  get failure(): Error | undefined {
    return this.#connectFailures.last;
  }

  get suspicion(): string {
    return this.failure ? `: ${this.failure.message}` : '';
  }

  addressOf(name: string): string | undefined {
    return this.#redis.slots[slotOf(name)]?.[0];
  }

  groupOf(name: string): string {
    return this.#redis.slots[slotOf(name)]?.join() ?? '';
  }

  open(address: string, override: Record<string, unknown>): RedisSubscriberClient | undefined {
    const node = this.#redis.nodes('all').find(({ options }) => `${options.host}:${options.port}` === address);
    return node?.duplicate({ ...override, readOnly: false });
  }

  async masters(): Promise<readonly RedisClient[]> {
    // Before it is connected, a client only knows its start nodes.
    if (this.#redis.status !== 'ready') await this.#redis.ping();
    return this.#redis.nodes('master');
  }

  refreshTopology(): void {
    const redis = this.#redis;
    // In all other states it is connecting, which reads the topology anyway, or has ended.
    if (redis.status === 'ready') redis.refreshSlotsCache();
    else if (redis.status === 'wait') redis.connect().catch(() => {});
  }

  onChange(listener: () => void): () => void {
    return listen(this.#redis, 'refresh', listener);
  }

  /** An address of the slot map names one server. */
  onReconnect(): () => void {
    return () => {};
  }

  onReturn(listener: () => void): () => void {
    let before = this.#allMasters();
    return this.onChange(() => {
      const now = this.#allMasters();
      if (now !== before) listener();
      before = now;
    });
  }

  close(): void {
    this.#connectFailures.close();
    for (const end of this.#ends) end();
  }

  #allMasters(): string {
    return [...new Set(this.#redis.slots.map((nodes) => nodes?.[0]))].join();
  }
}
