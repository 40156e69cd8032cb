import { Deadline } from '../../base/clock.js';
import type { RedisClient } from '../client.js';
import { isConnectionRefused } from '../errors.js';
import { listen } from '../shared-listeners.js';

/**
 * How long a refused connection counts; milliseconds. By default ioredis 6 tries again after 5.2 s at the latest, and ioredis 5
 * after two. A client with a longer retry delay, or one that has given up, would not learn that the server is back and grants
 * leases to others.
 */
const REFUSAL_TIME = 6_000;

/**
 * Remembers whether the server's machine has just refused a connection: then the server is down and its memory is gone.
 */
export class RefusedConnection {
  readonly #ends: ReadonlyArray<() => void>;
  #until = new Deadline(0);

  constructor(redis: RedisClient) {
    const countFor = (time: number) => {
      this.#until = new Deadline(time);
    };
    this.#ends = [
      listen(redis, 'close', () => countFor(isConnectionRefused(redis.stream?.errored) ? REFUSAL_TIME : 0)),
      listen(redis, 'connect', () => countFor(0)),
    ];
  }

  get isRecent(): boolean {
    return !this.#until.passed;
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
