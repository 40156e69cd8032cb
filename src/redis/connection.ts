import { listen } from './listen.js';

/** The states of a client that is on its way to a connection. */
const UNCONNECTED = ['connecting', 'close', 'reconnecting'];

interface Connecting {
  readonly status: string;
  on(event: 'connect' | 'end', listener: () => void): unknown;
  off(event: 'connect' | 'end', listener: () => void): unknown;
}

/** The connection of a client, for those who wait for it: on one listener, however many they are. */
export class RedisConnection {
  readonly #redis: Connecting;
  #awaited: Promise<void> | undefined;
  #settle = () => {};

  constructor(redis: Connecting) {
    this.#redis = redis;
  }

  /**
   * While the client has none, and would keep back what it is given: resolves when it has one, or will never have one
   * again. It need not be ready: a login that is refused is told to what was given to the client by then.
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

  /** Leaves nothing with the client. */
  close(): void {
    this.#settle();
  }
}
