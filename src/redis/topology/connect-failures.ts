import type { ClusterClient, RedisClient } from '../client.js';
import { presentable } from '../errors.js';
import { listen } from '../shared-listeners.js';

/** The answer to SELECT. */
const NO_SUCH_DATABASE = /DB index is out of range|invalid DB index/;

/** The clients of which a warning says that they cannot connect. */
const warned = new WeakSet<object>();

/**
 * Keeps the error of a client's last failed connect until a connect succeeds. If nobody else listens, a warning tells of
 * the first one.
 */
export class ConnectFailures {
  readonly #ends: ReadonlyArray<() => void>;
  #last: Error | undefined;

  constructor(redis: RedisClient | ClusterClient) {
    const emitter = redis as Pick<RedisClient, 'on' | 'off' | 'listenerCount'>;
    const remember = (error?: Error) => {
      this.#last = error && presentable(error);
      if (this.#last === undefined) warned.delete(redis);
      // All stores of a client share one listener.
      else if (emitter.listenerCount?.('error') === 1) warnOnce(redis, this.#last);
    };
    // With this listener, ioredis does not print the errors as unhandled, each try anew. One warning replaces them.
    this.#ends = [listen(emitter, 'error', remember), listen(emitter, 'ready', () => remember())];
  }

  get last(): Error | undefined {
    return this.#last;
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}

/** Nobody else listens, and a caller that waits would hear of the reason only at the end of its wait time. */
function warnOnce(redis: object, { message }: Error): void {
  if (warned.has(redis)) return;
  warned.add(redis);
  process.emitWarning(
    `The Redis client given to fencedLock ${said(message)} This is said once; for each error, add redis.on('error', …).`,
    {
      code: 'FENCED_LOCK_REDIS',
    },
  );
}

function said(message: string): string {
  // ioredis goes on, in the database in which each connection begins.
  if (NO_SUCH_DATABASE.test(message)) {
    return `could not select the database of its URL: ${message}. Its locks are in database 0 instead. Correct the number in the URL.`;
  }
  return (
    `cannot connect: ${message}. It keeps trying. Until it connects, locks wait for their waitTime, or not at all if the ` +
    "login is refused, and then reject with LOCK_UNAVAILABLE, or go on without Redis if onRedisUnavailable is 'postgres'."
  );
}
