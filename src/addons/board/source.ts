import type { LockState, LockTurn } from '../../public.js';

/** A value as a page gets it: JSON has neither `bigint` nor `Date`, and leaves out what is `undefined`. */
export type Sent<T> = T extends bigint | Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Sent<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: Sent<T[Name]> }
      : T;

/** One turn of a key, for the page. */
export type BoardTurn = Sent<LockTurn>;

/** The result of one check. */
export interface Finding {
  /** A sentence. */
  readonly message: string;
  /** What to do about a fault; `undefined`: all is well. */
  readonly remedy?: string;
}

/** A server, as its client knows it, and as it has answered. */
export interface ServerState {
  /** `host:port`, without user and password. */
  readonly address: string;
  /** Such as `server`, `node 2 of 3`, `master`, `replica`. */
  readonly role: string;
  /** In the client's own word, such as `ready` or `reconnecting`; `no answer` if it is ready, and the server silent. */
  readonly status: string;
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
}

/** What the servers have answered. */
export interface Health {
  readonly postgres: ServerState;
  readonly redis: readonly ServerState[];
}

/** The data source of a board. There are two: a Prisma client, and the connections of the command. */
export interface BoardSource {
  /** Resolves to the keys in use, and to those of `recent` that are not in use. Rejects if a server gives no answer. */
  look(recent: readonly string[]): Promise<readonly LockState[]>;
  /**
   * Takes the key from `holder`, and `null`: from whoever keeps it without a lease. Nothing is done if another holder has it
   * by then.
   */
  forceRelease(key: string, holder: string | null): Promise<'taken' | 'free' | 'held by another'>;
  /** The last turns of a key, the newest first. */
  history(key: string): Promise<readonly LockTurn[]>;
  /** Asks the servers. Never rejects: one that gives no answer has a finding that says so. */
  health(): Promise<Health>;
  /** Called when the last viewer has left: connections may be closed. */
  rest?(): void;
  /** How many callers of this process wait, for each key. A process that takes no locks, as that of the command, has none. */
  callers?(): ReadonlyMap<string, number>;
}
