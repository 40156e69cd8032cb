/** No server of this kind can be had here. The message says how to get one, so it can be shown as the reason of a skip. */
export class ServerUnavailable extends Error {
  override readonly name = 'ServerUnavailable';
}

/** A server for tests: a process that is supervised here, or one of somebody else. */
export interface Server {
  /** Where it comes from: a program, a package, Docker, or an environment variable. */
  readonly kind: string;
  /** Whether kill, start, restart, freeze and thaw work; otherwise they throw, and so does `pid`. */
  readonly supervised: boolean;
  readonly version: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Of its first process. */
  readonly pid: number;
  /** Its temp directory, if it has one here. */
  readonly dir: string | undefined;
  /** A crash: SIGKILL to all of its processes. */
  killHard(): Promise<void>;
  /** Again on the same port and directory. Resolves when it answers. */
  start(): Promise<void>;
  /** Ends without a shutdown of the server's own kind and starts again, so with recovery. */
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** May be called more than once. */
  stop(): Promise<void>;
}

/** One of somebody else, or in a container. */
export function externalServer(known: Pick<Server, 'kind' | 'version' | 'url' | 'port' | 'stop'>): Server {
  const { kind, url } = known;
  const refuse = (verb: string): never => {
    throw new Error(
      `${verb}: the server comes from ${kind}, and only one that was started here can be stopped or frozen.`,
    );
  };
  return {
    ...known,
    supervised: false,
    host: new URL(url).hostname,
    dir: undefined,
    // Not 0 and not -1: a signal to either reaches far more than one process.
    get pid() {
      return refuse('pid');
    },
    killHard: async () => refuse('killHard'),
    start: async () => refuse('start'),
    restart: async () => refuse('restart'),
    freeze: () => refuse('freeze'),
    thaw: () => refuse('thaw'),
  };
}
