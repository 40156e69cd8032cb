import type { RedisClient } from '../client.js';
import { listen } from '../listen.js';

/**
 * Connects a client again that was cut short on its way to a master, by nobody who uses it. The failover detector of
 * ioredis 5 and 6 does so when it hears of a failover while the client already asks a sentinel who is master now, and
 * the client then ends for good.
 */
export class Revival {
  readonly #redis: RedisClient;
  readonly #ends: ReadonlyArray<() => void>;
  #onItsWay: boolean;
  #cutShort = false;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#onItsWay = redis.status === 'connecting';
    const arrives = () => {
      this.#onItsWay = false;
    };
    this.#ends = [
      listen(redis, 'connecting', () => {
        this.#onItsWay = true;
        this.#cutShort = false;
      }),
      listen(redis, 'connect', arrives),
      listen(redis, 'close', arrives),
      listen(redis, 'end', () => {
        // Of its own, and set by nothing but a `disconnect` of its owner.
        const { manuallyClosing } = redis as { readonly manuallyClosing?: boolean };
        this.#cutShort = this.#onItsWay && manuallyClosing !== true;
        this.#onItsWay = false;
      }),
    ];
  }

  /** Somebody needs the client. */
  revive(): void {
    if (this.#cutShort && this.#redis.status === 'end') this.#redis.connect().catch(() => {});
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
