import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../servers/programs.js';
import { CommitWatcher } from './commit-watcher.js';
import { breakOff, Lane, type Verdict, type Way } from './lane.js';

export type Direction = 'toServer' | 'toClient';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** What the Postgres protocol says about a piece of data. */
export interface Seen {
  readonly commit: boolean;
  readonly commitReply: boolean;
}

/** Judges each piece of data as it arrives; the first hook that says something else than 'forward' decides. */
export type DataHook = (data: Buffer, seen: Seen) => Verdict;

export async function startFaultProxy(target: Target): Promise<FaultProxy> {
  const proxy = new FaultProxy(target, await freePort());
  await proxy.refuse(false);
  return proxy;
}

/** A TCP proxy that can be told to misbehave. All verbs apply to live and to later connections. */
export class FaultProxy {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly #target: Target;
  readonly #live = new Set<ProxiedConnection>();
  readonly #hooks: Record<Direction, Set<DataHook>> = { toServer: new Set(), toClient: new Set() };
  readonly #ways: Record<Direction, Way> = {
    toServer: { silent: false, latency: 0 },
    toClient: { silent: false, latency: 0 },
  };
  #listener: Server | undefined;
  #accepted = 0;

  constructor(target: Target, port: number) {
    this.#target = target;
    this.port = port;
  }

  /** The url of the server, led through the proxy. */
  url(original: string): string {
    return Object.assign(new URL(original), { hostname: this.host, port: String(this.port) }).href;
  }

  get connections(): number {
    return this.#live.size;
  }

  /** How many there have been since the beginning. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Delays all data by `ms`, without making the line narrower. */
  latency(ms: number, direction?: Direction): void {
    for (const way of this.#waysOf(direction)) way.latency = ms;
  }

  /** Holds everything back, the end of a connection too: each side believes that the other one is still there. */
  silence(direction?: Direction): void {
    for (const way of this.#waysOf(direction)) way.silent = true;
  }

  /** Lets everything go that was held back, in order. */
  resume(): void {
    for (const way of this.#waysOf()) way.silent = false;
    for (const connection of this.#live) connection.resume();
  }

  /** Breaks all live connections with RST, on both sides. */
  reset(): void {
    for (const connection of this.#live) connection.reset();
  }

  /** Refuses new connections, as a port where nobody listens; the live ones stay. */
  async refuse(refuse = true): Promise<void> {
    if (refuse) {
      // Not awaited: it ends only when the live connections do, but stops listening at once.
      this.#listener?.close();
      this.#listener = undefined;
    } else if (this.#listener === undefined) {
      this.#listener = await this.#listen();
    }
  }

  /** Returns the function that takes the hook away again. */
  onData(direction: Direction, hook: DataHook): () => void {
    this.#hooks[direction].add(hook);
    return () => this.#hooks[direction].delete(hook);
  }

  /** The next COMMIT does not reach Postgres: it did not happen, and the client cannot know. The signal calls it off. */
  cutBeforeCommit(signal?: AbortSignal): Promise<void> {
    return this.#once('toServer', 'cut', (seen) => seen.commit, signal);
  }

  /** The next COMMIT is done, but its answer does not reach the client, who sees the same as above. */
  cutAfterCommit(signal?: AbortSignal): Promise<void> {
    return this.#once('toClient', 'cut', (seen) => seen.commitReply, signal);
  }

  /** The next COMMIT is done, and the connection stays open and silent until `resume()` lets the answer through. */
  holdCommitReply(): Promise<void> {
    return this.#once('toClient', 'hold', (seen) => seen.commitReply);
  }

  async close(): Promise<void> {
    await this.refuse();
    this.reset();
  }

  #waysOf(direction?: Direction): Way[] {
    return direction === undefined ? Object.values(this.#ways) : [this.#ways[direction]];
  }

  #once(direction: Direction, verdict: Verdict, matches: (seen: Seen) => boolean, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const remove = this.onData(direction, (_, seen) => {
        if (!matches(seen)) return 'forward';
        remove();
        // After the verdict was carried out.
        setImmediate(resolve);
        return verdict;
      });
      signal?.addEventListener('abort', () => {
        remove();
        reject(signal.reason);
      });
    });
  }

  #judge(direction: Direction, data: Buffer, seen: Partial<Seen>): Verdict {
    for (const hook of this.#hooks[direction]) {
      const verdict = hook(data, { commit: false, commitReply: false, ...seen });
      if (verdict !== 'forward') return verdict;
    }
    return 'forward';
  }

  async #listen(): Promise<Server> {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const judge: Judge = (...data) => this.#judge(...data);
      const connection = new ProxiedConnection(client, this.#target, this.#ways, judge, () =>
        this.#live.delete(connection),
      );
      this.#live.add(connection);
      this.#accepted++;
    });
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(this.port, this.host, resolve);
    });
    return listener;
  }
}

type Judge = (direction: Direction, data: Buffer, seen: Partial<Seen>) => Verdict;

/** One client of the proxy and its connection to the server. */
class ProxiedConnection {
  readonly #sockets: readonly Socket[];
  readonly #lanes: readonly Lane[];

  constructor(
    client: Socket,
    { host, port }: Target,
    { toServer, toClient }: Record<Direction, Way>,
    judge: Judge,
    closed: () => void,
  ) {
    const server = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const cut = () => this.reset();
    // It reads everything, whether somebody asks or not: a message may have begun in an earlier piece.
    const commits = new CommitWatcher();
    const up = (data: Buffer) => judge('toServer', data, { commit: commits.hasCommit(data) });
    const down = (data: Buffer) => judge('toClient', data, { commitReply: commits.hasCommitReply(data) });
    this.#sockets = [client, server];
    this.#lanes = [new Lane(client, server, toServer, up, cut), new Lane(server, client, toClient, down, cut)];
    for (const socket of this.#sockets) {
      // What follows from an error is done on 'close'.
      socket.on('error', () => {});
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) closed();
      });
    }
  }

  resume(): void {
    for (const lane of this.#lanes) lane.resume();
  }

  /** RST to both sides; what was still held back is lost. */
  reset(): void {
    for (const lane of this.#lanes) lane.discard();
    for (const socket of this.#sockets) breakOff(socket);
  }
}
