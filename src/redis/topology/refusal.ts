import { Deadline } from '../../base/clock.js';
import type { RedisClient } from '../client.js';
import { isRefusal } from '../errors.js';
import { listen } from '../listen.js';

/**
 * How long a refusal is believed; milliseconds. ioredis tries again every two seconds at the least. A client that was told
 * to rest for longer, or has given up, would not hear that the server is back, and gives leases to others.
 */
const REFUSAL_TIME = 3_000;

/** Whether the machine of a client's server has just refused a connection: then nobody is there. */
export class Refusal {
  readonly #ends: ReadonlyArray<() => void>;
  #until = new Deadline(0);

  constructor(redis: RedisClient) {
    const believe = (time: number) => {
      this.#until = new Deadline(time);
    };
    this.#ends = [
      listen(redis, 'close', () => believe(isRefusal(redis.stream?.errored) ? REFUSAL_TIME : 0)),
      listen(redis, 'connect', () => believe(0)),
    ];
  }

  get stands(): boolean {
    return !this.#until.passed;
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
