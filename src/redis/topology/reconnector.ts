import type { RedisClient } from '../client.js';
import { listen } from '../shared-listeners.js';

/**
 * Reconnects a client that the failover detector of ioredis 5 and 6 has ended. If the detector learns of a failover
 * while the client is asking a sentinel for the master, it disconnects the client, which then never reconnects.
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
        // A private field of ioredis, set only by a `disconnect` of the owner.
        const { manuallyClosing } = redis as { readonly manuallyClosing?: boolean };
        this.#wasInterrupted = this.#isConnecting && manuallyClosing !== true;
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
