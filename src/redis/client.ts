/** The part of an ioredis client that is used here; ioredis 5 and 6 both have it. */
interface Commands {
  readonly status: string;
  readonly options?: { readonly keyPrefix?: string | undefined };
  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown>;
  eval(lua: string, keys: number, ...rest: string[]): Promise<unknown>;
  pipeline(): RedisPipeline;
}

type ClientEvent = 'connecting' | 'connect' | 'ready' | 'close' | 'end' | 'error';

/** Of one server, or of a Sentinel group. Wake-ups go over one duplicate of it. */
export interface RedisClient extends Commands {
  readonly options?: {
    readonly keyPrefix?: string | undefined;
    readonly sentinels?: readonly unknown[] | null | undefined;
    readonly failoverDetector?: boolean | undefined;
  };
  readonly mode: string;
  /** Of the connection at the moment, or of the last one; Node's own. */
  readonly stream?: { readonly errored?: Error | null };
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
}

/** Of a Cluster. Wake-ups go over one duplicate of the client of each node that has a key somebody waits for. */
export interface ClusterClient extends Commands {
  readonly isCluster: true;
  /** The addresses of the nodes that have a slot, its master first. */
  readonly slots: ReadonlyArray<readonly string[] | undefined>;
  nodes(role: 'all' | 'master'): NodeClient[];
  connect(): Promise<void>;
  ping(): Promise<unknown>;
  /** Asks a node which has which slot; then comes `refresh`. */
  refreshSlotsCache(answered?: (error?: unknown) => void): void;
  on(event: 'refresh' | 'ready' | 'connect' | 'end' | 'error', listener: (error?: Error) => void): unknown;
  off(event: 'refresh' | 'ready' | 'connect' | 'end' | 'error', listener: (error?: Error) => void): unknown;
}

type NodeClient = RedisClient & { readonly options: { readonly host?: string; readonly port?: number } };

interface RedisPipeline {
  evalsha(sha1: string, keys: number, ...rest: string[]): unknown;
  exec(): Promise<Array<[error: Error | null, reply: unknown]> | null>;
}

/** The part of the duplicate that is used here. */
export interface RedisSubscriberClient {
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  sunsubscribe(...channels: string[]): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  /** Of the connection at the moment; Node's own. */
  readonly stream?: {
    ref(): unknown;
    unref(): unknown;
    destroy(): unknown;
    on(event: 'error', listener: () => void): unknown;
  };
  /** `moved`: a channel of this connection is another node's now. */
  on(event: 'ready' | 'close' | 'end' | 'moved' | 'error', listener: (error?: Error) => void): unknown;
  on(event: 'message' | 'smessage', listener: (channel: string, message: string) => void): unknown;
}
