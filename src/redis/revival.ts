import type { RedisClient } from './client.js';

/**
 * Connects a client again that was cut short on its way to a master, by nobody who uses it. The failover detector of
 * ioredis 5 and 6 does so when it hears of a failover while the client already asks a sentinel who is master now, and
 * the client then ends for good.
 */
export class Revival {
  readonly #redis: RedisClient;
  #onItsWay: boolean;
  #cutShort = false;
  readonly #setsOut = () => {
    this.#onItsWay = true;
    this.#cutShort = false;
  };
  readonly #arrives = () => {
    this.#onItsWay = false;
  };
  readonly #ends = () => {
    // Of its own, and set by nothing but a `disconnect` of its owner.
    const { manuallyClosing } = this.#redis as { readonly manuallyClosing?: boolean };
    this.#cutShort = this.#onItsWay && manuallyClosing !== true;
    this.#onItsWay = false;
  };

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#onItsWay = redis.status === 'connecting';
    redis.on('connecting', this.#setsOut);
    redis.on('connect', this.#arrives);
    redis.on('close', this.#arrives);
    redis.on('end', this.#ends);
  }

  /** Somebody needs the client. */
  revive(): void {
    if (this.#cutShort && this.#redis.status === 'end') this.#redis.connect().catch(() => {});
  }

  close(): void {
    this.#redis.off('connecting', this.#setsOut);
    this.#redis.off('connect', this.#arrives);
    this.#redis.off('close', this.#arrives);
    this.#redis.off('end', this.#ends);
  }
}
