import type { ClusterClient, RedisClient } from '../client.js';
import { presentable } from '../errors.js';
import { listen } from '../listen.js';

/** Why the last try of a client to connect failed, until one succeeds: it says so once for each try. */
export class Failure {
  readonly #ends: ReadonlyArray<() => void>;
  #last: Error | undefined;

  constructor(redis: RedisClient | ClusterClient) {
    const emitter = redis as Pick<RedisClient, 'on' | 'off'>;
    const remember = (error?: Error) => {
      this.#last = error && presentable(error);
    };
    // With a listener ioredis no longer writes each of them to the console as unhandled.
    this.#ends = [listen(emitter, 'error', remember), listen(emitter, 'ready', () => remember())];
  }

  get last(): Error | undefined {
    return this.#last;
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
