import { after } from '../base/clock.js';
import type { ClusterClient, RedisClient } from './client.js';
import { listen } from './shared-listeners.js';

// What is done here alone because of faults of ioredis. Each was seen in 5.11 and 6.0, has no fix in a version yet, and is
// shown by a test: delete the function when its test passes without it.

/** The private field that says that the client's owner has ended it by `disconnect` or `quit`. It is reset by `connect`. */
export function isClosedByOwner(redis: object): boolean {
  return (redis as { readonly manuallyClosing?: boolean }).manuallyClosing === true;
}

/** How long a Cluster client may send a command that it has given up; milliseconds. It tries 16 times by default. */
const SENT_AGAIN_FOR = 5_000;

/**
 * What a command waits for that the client has given up by its own `commandTimeout`: its promise has rejected, but where its
 * master is replaced a Cluster client sends it all the same, some seconds later, and tells nobody
 * (test/redis/topology/cluster-faults.slow.test.ts, with a master that is killed). `undefined` for any other error.
 */
export function sentAgain(error: unknown): Promise<void> | undefined {
  if ((error as Error | undefined)?.message !== 'Command timed out') return undefined;
  return new Promise((resolve) => {
    after(SENT_AGAIN_FOR, resolve).unref();
  });
}

interface AskingNode {
  asking?(...given: unknown[]): Promise<unknown>;
}

/** The clients of nodes whose ASKING is handled. */
const handled = new WeakSet<object>();

/**
 * Handles rejections of ASKING, which would otherwise end the process. While a slot moves, ioredis sends ASKING in front of
 * a command, and drops its promise. If the node does not answer within the client's `commandTimeout`, that promise rejects:
 * an unhandled rejection (test/redis/topology/cluster-client.slow.test.ts).
 *
 * @returns the function that stops listening to the client for new nodes.
 */
export function handleAsking(redis: ClusterClient): () => void {
  const handleAll = () => {
    for (const node of redis.nodes('all') as AskingNode[]) {
      const { asking } = node;
      if (asking === undefined || handled.has(node)) continue;
      handled.add(node);
      node.asking = (...given) => {
        const answer = asking.apply(node, given);
        answer.catch(() => {});
        return answer;
      };
    }
  };
  handleAll();
  return listen(redis, '+node', handleAll);
}

/**
 * Reconnects a client that its own failover detector has ended: if the detector learns of a failover while the client asks
 * a sentinel for the master, it disconnects the client, which then never reconnects (test/redis/topology/sentinel.slow.test.ts).
 */
export class Reconnector {
  readonly #redis: RedisClient;
  readonly #ends: ReadonlyArray<() => void>;
  #isConnecting: boolean;
  #wasInterrupted = false;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#isConnecting = redis.status === 'connecting';
    const arrives = () => {
      this.#isConnecting = false;
    };
    this.#ends = [
      listen(redis, 'connecting', () => {
        this.#isConnecting = true;
        this.#wasInterrupted = false;
      }),
      listen(redis, 'connect', arrives),
      listen(redis, 'close', arrives),
      listen(redis, 'end', () => {
        this.#wasInterrupted = this.#isConnecting && !isClosedByOwner(redis);
        this.#isConnecting = false;
      }),
    ];
  }

  /** Called when the client is needed. */
  reconnect(): void {
    if (this.#wasInterrupted && this.#redis.status === 'end') this.#redis.connect().catch(() => {});
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
