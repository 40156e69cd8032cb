/** The part of an ioredis client that is used here. ioredis 5 and 6 both have it. */
interface AnyClient {
  readonly status: string;
  readonly options?: { readonly keyPrefix?: string | undefined };
  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown>;
  eval(lua: string, keys: number, ...rest: string[]): Promise<unknown>;
}

type ClientEvent = 'connecting' | 'connect' | 'ready' | 'close' | 'end' | 'error';
type ClusterEvent = 'connecting' | 'connect' | 'ready' | 'end' | 'error' | 'refresh' | '+node';

/** A client of one server or of a Sentinel group. Wake-ups use one duplicate of it. */
export interface RedisClient extends AnyClient {
  readonly options?: NonNullable<AnyClient['options']> & {
    readonly sentinels?: readonly unknown[] | null | undefined;
    readonly failoverDetector?: boolean | undefined;
  };
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    step: string,
  ): Promise<[cursor: string, names: string[]]>;
  connect(): Promise<void>;
  duplicate(override?: Record<string, unknown>): RedisSubscriberClient;
  on(event: ClientEvent, listener: (error?: Error) => void): unknown;
  off(event: ClientEvent, listener: (error?: Error) => void): unknown;
  listenerCount?(event: ClientEvent): number;
}

/**
 * A client of a Cluster. Wake-ups use one duplicate of the client of each node that has a key with a waiting caller.
 */
export interface ClusterClient extends AnyClient {
  readonly isCluster: true;
  /** The addresses of the nodes that serve a slot, its master first. */
  readonly slots: ReadonlyArray<readonly string[] | undefined>;
  nodes(role: 'all' | 'master'): NodeClient[];
  connect(): Promise<void>;
  ping(): Promise<unknown>;
  /** Asks a node for the slot map. `refresh` is emitted after the answer. */
  refreshSlotsCache(answered?: (error?: unknown) => void): void;
  on(event: ClusterEvent, listener: (error?: Error) => void): unknown;
  off(event: ClusterEvent, listener: (error?: Error) => void): unknown;
}

type NodeClient = RedisClient & { readonly options: { readonly host?: string; readonly port?: number } };

/** The part of the duplicate that is used here. */
export interface RedisSubscriberClient {
  readonly status: string;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  sunsubscribe(...channels: string[]): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(): void;
  /** The Node stream of the present connection. */
  readonly stream?: {
    ref(): unknown;
    unref(): unknown;
    on(event: 'error', listener: () => void): unknown;
  };
  /** `moved`: a channel of this connection has moved to another node. */
  on(event: 'ready' | 'close' | 'end' | 'moved' | 'error', listener: (error?: Error) => void): unknown;
  on(event: 'message' | 'smessage', listener: (channel: string, message: string) => void): unknown;
}
