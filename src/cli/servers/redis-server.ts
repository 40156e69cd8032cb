import type { KeyState, LeaseStore } from '../../lease/store.js';
import type { Info } from './ioredis.js';

/** What the commands need of leases and queues. Each of them throws a Problem where Redis refuses. */
export interface Locks extends Pick<LeaseStore, 'inspect' | 'force'> {
  list(): Promise<Listing>;
}

export interface Listing {
  readonly keys: readonly KeyState[];
  /** Why those of some masters of a Cluster are not among them, a sentence for each. */
  readonly missing: readonly string[];
}

/** One that keeps keys. */
export interface RedisNode {
  /** `host:port`, as messages may show it. */
  readonly shown: string;
  /** One that is kept here, and that nobody has. */
  readonly key: string;
  /** What INFO says. @throws Problem */
  info(): Promise<Info>;
}

/** What the commands need of a Redis server, or of the Cluster that it is a node of. */
export interface RedisServer {
  /** `host:port`, as messages may show it. */
  readonly shown: string;
  /** What it is, as INFO has it, such as `standalone`, `cluster` or `sentinel`; `undefined` where it does not say. */
  readonly mode: string | undefined;
  /** Itself, or each master of the Cluster. */
  nodes(keyPrefix: string): Promise<readonly RedisNode[]>;
  /** Those whose names begin with `keyPrefix`. */
  locks(keyPrefix: string): Locks;
  /** The same as the application has them, refusals included. */
  store(keyPrefix: string, options?: StoreOptions): LeaseStore;
  close(): void;
}

export interface StoreOptions {
  /** `false`: they are neither published nor heard. */
  readonly wakeUps?: boolean;
  readonly offerTime?: number;
}

/** The servers of Redis that have the keys together, as the URLs were given. */
export interface RedisServers extends Pick<RedisServer, 'locks' | 'close'> {
  /** `failure`: why one of several cannot be used. */
  readonly servers: ReadonlyArray<{
    readonly address: string;
    readonly role: string;
    readonly failure: string | undefined;
  }>;
}
