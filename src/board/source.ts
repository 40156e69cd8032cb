/** A key, as `$locks.list()` or the command sees it. */
export interface BoardKey {
  readonly key: string;
  /** The random id of its holder. */
  readonly holder?: string | null | undefined;
  /** The name of its process, where it is known. */
  readonly process?: string | null | undefined;
  /** Milliseconds. */
  readonly expiresIn: number;
  /** Processes. */
  readonly waiting: number;
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

/** A server of Redis, as its client knows it. */
export interface RedisServerState {
  /** `host:port`. */
  readonly address: string;
  /** Such as `server`, `node 2 of 3`, `master`, `replica`. */
  readonly role: string;
  /** In the client's own word, such as `ready` or `reconnecting`. */
  readonly status: string;
  readonly healthy: boolean;
}

/** An event in this process. */
export interface Happening {
  /** Such as `stale-write` or `lease-lost`. */
  readonly type: string;
  /** Something was refused, lost or down; `false`: it works again. */
  readonly bad: boolean;
  readonly key?: string | undefined;
  /** A sentence. */
  readonly text: string;
}

/** What this process alone knows. */
export interface ProcessWatcher {
  happened(happening: Happening): void;
  /** A caller has waited for a key; milliseconds. */
  waited(ms: number): void;
}

/** Where the board has everything from: a Prisma client, or the command's own connections. */
export interface BoardSource {
  /** The keys in use, and those of `recent` that are not. Rejects where a server does not say. */
  look(recent: readonly string[]): Promise<Look>;
  /** The present holder, `null` where nobody has it. */
  holderOf(key: string): Promise<string | null>;
  forceRelease(key: string): Promise<boolean>;
  /** Never rejects: what cannot be asked is a finding. */
  health(): Promise<readonly Finding[]>;
  /** What is known without asking. */
  topology(): readonly RedisServerState[];
  /** Nobody looks any more. */
  rest?(): void;
  /** `undefined` where the board runs in a process that takes no locks. */
  readonly process?: {
    /** How many callers wait, key by key. */
    callers(): ReadonlyMap<string, number>;
    /** Until the function that it gives is called. */
    watch(watcher: ProcessWatcher): () => void;
  };
}
