import type { KeyState, LeaseStore } from '../../lease/store.js';
import type { Info } from './ioredis.js';

/** What the commands need of leases and queues. All methods reject with a Problem if Redis refuses. */
export interface Locks extends Pick<LeaseStore, 'inspect' | 'force'> {
  list(): Promise<Listing>;
}

export interface Listing {
  readonly keys: readonly KeyState[];
  /** One sentence for each master of a Cluster whose keys are missing. */
  readonly missing: readonly string[];
}

/** A server that stores keys. */
export interface RedisNode {
  /** `host:port`, for messages. */
  readonly shown: string;
  /** A key that this server stores and that nobody holds. */
  readonly key: string;
  /** The fields of INFO. @throws Problem */
  info(): Promise<Info>;
}

/** What the commands need of a Redis server, or of the Cluster that it belongs to. */
export interface RedisServer {
  /** `host:port`, for messages. */
  readonly shown: string;
  /** The same, and the number of its database if that is not the first. */
  readonly place: string;
  /** The mode according to INFO, such as `standalone`, `cluster` or `sentinel`; `undefined` if unknown. */
  readonly mode: string | undefined;
  /** At the moment. A connection that is lost is not opened again. */
  readonly isConnected: boolean;
  /** The server itself, or each master of the Cluster. */
  nodes(keyPrefix: string): Promise<readonly RedisNode[]>;
  /** The locks with this `keyPrefix`. */
  locks(keyPrefix: string): Locks;
  /** The store as the application has it, with its errors. */
  store(keyPrefix: string, options?: StoreOptions): LeaseStore;
  close(): void;
}

export interface StoreOptions {
  /** `false`: wake-ups are neither published nor subscribed to. */
  readonly wakeUps?: boolean;
  readonly offerTime?: number;
}

/** The servers of Redis that have the keys together, as the URLs were given. */
export interface RedisServers extends Pick<RedisServer, 'locks' | 'close'> {
  /** Each as `host:port`, and the number of its database if that is not the first. */
  readonly places: readonly string[];
  /** At the moment. `failure`: why the server cannot be used. */
  readonly servers: ReadonlyArray<{
    readonly address: string;
    readonly role: string;
    readonly failure: string | undefined;
  }>;
}
