import { listen } from './listen.js';

/** Statuses of a client that is going to connect. */
const UNCONNECTED = ['connecting', 'close', 'reconnecting'];

interface Connecting {
  readonly status: string;
  on(event: 'connect' | 'end', listener: () => void): unknown;
  off(event: 'connect' | 'end', listener: () => void): unknown;
}

/** Waits for a client's connection, with one listener for all waiting callers. */
export class RedisConnection {
  readonly #redis: Connecting;
  #awaited: Promise<void> | undefined;
  #settle = () => {};

  constructor(redis: Connecting) {
    this.#redis = redis;
  }

  /**
   * While the client has no connection and would queue commands: resolves when it has one, or never will again. The
   * client need not be ready: queued commands get the error of a refused login.
   */
  get awaited(): Promise<void> | undefined {
    if (!UNCONNECTED.includes(this.#redis.status)) return undefined;
    this.#awaited ??= new Promise((resolve) => {
      const ends = [
        listen(this.#redis, 'connect', () => this.#settle()),
        listen(this.#redis, 'end', () => this.#settle()),
      ];
      this.#settle = () => {
        this.#awaited = undefined;
        for (const end of ends) end();
        resolve();
      };
    });
    return this.#awaited;
  }

  /** Removes the listeners from the client. */
  close(): void {
    this.#settle();
  }
}
