import type { Context } from '../context.js';
import { connect, refused, type ServerOptions } from './both.js';
import { connectPostgres, type PostgresServer } from './postgres.js';
import type { RedisServers } from './redis-server.js';
import { databaseUrl, redisUrls } from './urls.js';

/** Connections that are opened when they are first needed, kept, and opened anew after one has failed. */
export class LastingServers {
  readonly #context: Context;
  readonly #options: ServerOptions;
  #database: Promise<PostgresServer> | undefined;
  #redis: Promise<RedisServers> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: Context, options: ServerOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** One after the other: each is a transaction, and there is one connection. @throws Problem */
  withDatabase<T>(work: (database: PostgresServer) => Promise<T>): Promise<T> {
    const done = this.#last.then(async () => {
      this.#database ??= databaseUrl(this.#context, this.#options).then((url) => connectPostgres(this.#context, url));
      const opened = this.#database;
      try {
        return await work(await opened);
      } catch (error) {
        if (this.#database === opened) this.#closeDatabase();
        throw await opened.then(
          (database) => refused(error, database),
          () => error,
        );
      }
    });
    this.#last = done.catch(() => {});
    return done;
  }

  /** @throws Problem */
  async withRedis<T>(work: (redis: RedisServers) => Promise<T>): Promise<T> {
    this.#redis ??= connect(this.#context, redisUrls(this.#context, this.#options));
    const opened = this.#redis;
    try {
      return await work(await opened);
    } catch (error) {
      if (this.#redis === opened) this.#closeRedis();
      throw error;
    }
  }

  close(): void {
    this.#closeDatabase();
    this.#closeRedis();
  }

  #closeDatabase(): void {
    this.#database?.then((database) => database.close()).catch(() => {});
    this.#database = undefined;
  }

  #closeRedis(): void {
    this.#redis?.then((redis) => redis.close()).catch(() => {});
    this.#redis = undefined;
  }
}
