import { Deadline } from '../base/clock.js';
import type { RedisClient } from './client.js';
import { isRefusal } from './errors.js';

/**
 * How long a refusal is believed; milliseconds. ioredis tries again every two seconds at the least. A client that was told
 * to rest for longer, or has given up, would not hear that the server is back, and gives leases to others.
 */
const REFUSAL_TIME = 3_000;

/** Whether the machine of a client's server has just refused a connection: then nobody is there. */
export class Refusal {
  readonly #redis: RedisClient;
  #until = new Deadline(0);
  readonly #closed = () => {
    this.#until = new Deadline(isRefusal(this.#redis.stream?.errored) ? REFUSAL_TIME : 0);
  };
  readonly #connected = () => {
    this.#until = new Deadline(0);
  };

  constructor(redis: RedisClient) {
    this.#redis = redis;
    redis.on('close', this.#closed);
    redis.on('connect', this.#connected);
  }

  get stands(): boolean {
    return !this.#until.passed;
  }

  close(): void {
    this.#redis.off('close', this.#closed);
    this.#redis.off('connect', this.#connected);
  }
}
