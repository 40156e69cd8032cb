/**
 * The part of an ioredis client that is used here; ioredis 5 and 6 both have it. Commands go over the caller's own
 * connection, wake-ups over one duplicate of it.
 */
export interface RedisClient {
  readonly mode: string;
  readonly status: string;
  readonly options?: { readonly keyPrefix?: string | undefined };
  evalsha(sha1: string, keys: number, ...rest: string[]): Promise<unknown>;
  eval(lua: string, keys: number, ...rest: string[]): Promise<unknown>;
  pipeline(): RedisPipeline;
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    step: string,
  ): Promise<[cursor: string, names: string[]]>;
  duplicate(override?: Record<string, unknown>): RedisSubscriberClient;
}

interface RedisPipeline {
  evalsha(sha1: string, keys: number, ...rest: string[]): unknown;
  exec(): Promise<Array<[error: Error | null, reply: unknown]> | null>;
}

/** The part of the duplicate that is used here. */
export interface RedisSubscriberClient {
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  /** Of the connection at the moment; Node's own. */
  readonly stream?: { ref(): unknown; unref(): unknown };
  on(event: 'ready' | 'close' | 'end' | 'error', listener: (error?: Error) => void): unknown;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
}
