import { createServer, type Server } from 'node:net';
import { freePort } from '../servers/programs.js';
import { ProxiedConnection, type Seen, type Target } from './connection.js';
import type { Direction, Verdict } from './lane.js';

export type { Direction, Seen, Target, Verdict };

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
  readonly #silent: Record<Direction, boolean> = { toServer: false, toClient: false };
  readonly #latency: Record<Direction, number> = { toServer: 0, toClient: 0 };
  #listener: Server | undefined;
  #accepted = 0;

  constructor(target: Target, port: number) {
    this.#target = target;
    this.port = port;
  }

  /** The url of the server, led through the proxy. */
  url(original: string): string {
    const changed = new URL(original);
    changed.hostname = this.host;
    changed.port = String(this.port);
    return changed.href;
  }

  get connections(): number {
    return this.#live.size;
  }

  /** How many there have been since the beginning. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Delays all data by `ms`, without making the line narrower. */
  latency(ms: number, direction: Direction | 'both' = 'both'): void {
    for (const each of directions(direction)) {
      this.#latency[each] = ms;
      for (const connection of this.#live) connection.lanes[each].latency = ms;
    }
  }

  /** Holds everything back, the end of a connection too: each side believes that the other one is still there. */
  silence(direction: Direction | 'both' = 'both'): void {
    for (const each of directions(direction)) {
      this.#silent[each] = true;
      for (const connection of this.#live) connection.lanes[each].silence();
    }
  }

  /** Lets everything go that was held back, in order. */
  resume(): void {
    for (const each of directions('both')) {
      this.#silent[each] = false;
      for (const connection of this.#live) connection.lanes[each].resume();
    }
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

  #judge(direction: Direction, data: Buffer, seen: Seen): Verdict {
    for (const hook of this.#hooks[direction]) {
      const verdict = hook(data, seen);
      if (verdict !== 'forward') return verdict;
    }
    return 'forward';
  }

  async #listen(): Promise<Server> {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const connection = new ProxiedConnection(
        client,
        this.#target,
        (...data) => this.#judge(...data),
        () => this.#live.delete(connection),
      );
      for (const each of directions('both')) {
        connection.lanes[each].latency = this.#latency[each];
        if (this.#silent[each]) connection.lanes[each].silence();
      }
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

function directions(which: Direction | 'both'): Direction[] {
  return which === 'both' ? ['toServer', 'toClient'] : [which];
}
