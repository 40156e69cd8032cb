import { Redis } from 'ioredis';

/** What one server was sent, in its own words. Lower-case verb first, then the arguments. */
export class Monitor {
  readonly #lines: string[][] = [];
  readonly #news = new Set<() => void>();
  readonly #redis: Redis;

  private constructor(redis: Redis) {
    this.#redis = redis;
    redis.on('monitor', (_time: string, [verb = '', ...args]: string[]) => {
      this.#lines.push([verb.toLowerCase(), ...args]);
      for (const news of this.#news) news();
    });
  }

  static async start(url: string): Promise<Monitor> {
    const redis = new Redis(url);
    try {
      return new Monitor(await redis.monitor());
    } finally {
      redis.disconnect();
    }
  }

  /** All commands so far with `word` in one of their arguments. */
  about(word: string): string[][] {
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
    this.#redis.disconnect();
  }
}
