import type { ClusterClient, RedisClient } from '../client.js';
import { presentable } from '../errors.js';
import { listen } from '../listen.js';

/** The error of a client's last failed connect, until a connect succeeds. */
export class Failure {
  readonly #ends: ReadonlyArray<() => void>;
  #last: Error | undefined;

  constructor(redis: RedisClient | ClusterClient) {
    const emitter = redis as Pick<RedisClient, 'on' | 'off'>;
    const remember = (error?: Error) => {
      this.#last = error && presentable(error);
    };
    // With this listener, ioredis does not print the errors as unhandled.
    this.#ends = [listen(emitter, 'error', remember), listen(emitter, 'ready', () => remember())];
  }

  get last(): Error | undefined {
    return this.#last;
  }

  close(): void {
    for (const end of this.#ends) end();
  }
}
