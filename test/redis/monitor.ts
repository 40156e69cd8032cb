import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

/** What one server was sent, in its own words: the verb in lower case, then the arguments. */
export class Monitor {
  readonly #lines: string[][] = [];
  readonly #news = new Set<() => void>();
  readonly #client: Redis;
  readonly #monitor: Redis;

  private constructor(client: Redis, monitor: Redis) {
    this.#client = client;
    this.#monitor = monitor;
    monitor.on('monitor', (_time: string, [verb = '', ...args]: string[], source: string) => {
      // What the scripts themselves do was sent by nobody.
      if (source === 'lua') return;
      this.#lines.push([verb.toLowerCase(), ...args]);
      for (const news of this.#news) news();
    });
  }

  static async start(url: string): Promise<Monitor> {
    const client = new Redis(url);
    return new Monitor(client, await client.monitor());
  }

  /** All commands that the server was sent until now with `word` in one of their arguments. */
  async about(word: string): Promise<string[][]> {
    // A monitor hears of a command later than its sender of the reply.
    const marker = randomUUID();
    await this.#client.echo(marker);
    await this.seen(([, said]) => said === marker);
    return this.#lines.filter((line) => line.some((part, index) => index > 0 && part.includes(word)));
  }

  /** Resolves once the server was sent `count` commands that match. */
  seen(matches: (line: string[]) => boolean, count = 1): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.#lines.filter(matches).length < count) return;
        this.#news.delete(look);
        resolve();
      };
      this.#news.add(look);
      look();
    });
  }

  stop(): void {
    this.#monitor.disconnect();
    this.#client.disconnect();
  }
}
