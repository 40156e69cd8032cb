/** The state of a key, as `$locks.list()` and the command read it. */
export interface BoardKey {
  readonly key: string;
  /** The random id of its holder. */
  readonly holder?: string | null | undefined;
  /** The name of the holder's process, if it is known. */
  readonly process?: string | null | undefined;
  /** Milliseconds. */
  readonly expiresIn: number;
  /** Processes. */
  readonly waiting: number;
  /** Their names, the first of the queue first, as far as they are known. */
  readonly waiters?: readonly (string | null | undefined)[] | undefined;
  readonly problem?: string | undefined;
  readonly token?: bigint | string | null | undefined;
  readonly turns: bigint | string;
  readonly admittedAt?: Date | null | undefined;
  readonly transaction?: { readonly pid: number; readonly since: Date } | null | undefined;
}

/** The result of one look. */
interface Look {
  readonly keys: readonly BoardKey[];
  /** For each server whose keys are missing: one sentence that says why. */
  readonly missing?: readonly string[];
}

/** One turn of a key, for the page. What nobody keeps is `null`. */
export interface BoardTurn {
  /** Its number in the key's row. A turn that was rolled back has the number of the next one that committed. */
  readonly turn: string | null;
  readonly token: string | null;
  /** ISO 8601. */
  readonly admittedAt: string | null;
  /** Milliseconds from the admission to the outcome. */
  readonly duration: number | null;
  readonly outcome: string;
  readonly process: string | null;
  /** Why it was rolled back: a code, or the name of the error's class. */
  readonly error: string | null;
}

/** The result of one check. */
export interface Finding {
  readonly server: 'postgres' | 'redis';
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'fault';
  /** A sentence. */
  readonly message: string;
  /** What to do. */
  readonly remedy?: string;
}

/** The result of all checks. */
export interface Health {
  readonly findings: readonly Finding[];
  /** `host:port/database`, without user and password; `undefined` as long as it is not known. */
  readonly database?: string | undefined;
}

/** A server, as its client knows it, and as it has answered. */
export interface ServerState {
  readonly address: string;
  /** Such as `server`, `node 2 of 3`, `master`, `replica`. */
  readonly role: string;
  /** In the client's own word, such as `ready` or `reconnecting`; `no answer` if it is ready, and the server silent. */
  readonly status: string;
  readonly healthy: boolean;
}

/** An event in this process. */
export interface Happening {
  /** The type of an event of `onEvent`, such as `lease-lost`, or `timeout`, or `stale-write`. */
  readonly type: string;
  /** Something was refused, lost or down; `false`: it works again. */
  readonly bad: boolean;
  readonly key?: string | undefined;
  /** A sentence. */
  readonly text: string;
}

/** Receives what is known only inside this process. */
export interface ProcessWatcher {
  note(happening: Happening): void;
  /** A caller has ended its wait for a key, whether it got the key or not; milliseconds. */
  waited(ms: number): void;
}

/** The data source of a board. There are two: a Prisma client, and the connections of the command. */
export interface BoardSource {
  /** Resolves to the keys in use, and to those of `recent` that are not in use. Rejects if a server gives no answer. */
  look(recent: readonly string[]): Promise<Look>;
  /** Resolves to the present holder, or to `null` if nobody holds the key. */
  holderOf(key: string): Promise<string | null>;
  /**
   * Takes the key from `holder`, and `null`: from whoever keeps it without a lease. Resolves to `false` if it was not there
   * to be taken; nothing is done if another holder has it by then.
   */
  forceRelease(key: string, holder: string | null): Promise<boolean>;
  /** The last turns of a key, the newest first. */
  history(key: string): Promise<readonly BoardTurn[]>;
  /** Never rejects: a server that gives no answer is a finding. */
  health(): Promise<Health>;
  /** The servers of Redis, as the client knows them and as they have answered, without asking now. */
  topology(): readonly ServerState[];
  /** Called when the last viewer has left: connections may be closed. */
  rest?(): void;
  /** `undefined` if the process of the board takes no locks, as that of the command. */
  readonly process?: {
    /** The number of callers of this process that wait, for each key. */
    callers(): ReadonlyMap<string, number>;
    /** Reports to `watcher` until the returned function is called. */
    watch(watcher: ProcessWatcher): () => void;
  };
}
