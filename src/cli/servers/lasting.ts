import { now } from '../../base/clock.js';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { connect, refused, type ServerOptions } from './both.js';
import { connectPostgres, type PostgresServer } from './postgres.js';
import type { RedisServers } from './redis-server.js';
import { databaseUrl, redisUrls } from './urls.js';

/** Between two tries to connect to a node that is down, while the other nodes answer; milliseconds. */
const RENEW_EVERY = 5_000;

/** Connections that are opened when they are first needed, kept, and opened anew after one has failed. */
export class LastingServers {
  readonly #context: Context;
  readonly #options: ServerOptions;
  #database: Promise<PostgresServer> | undefined;
  #redis: Promise<RedisServers> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  readonly #usingRedis = new Set<Promise<unknown>>();
  #round = 0;
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(context: Context, options: ServerOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Changes with each `close`. Work that belongs to an earlier round must open no connection: nobody would close it. */
  get round(): number {
    return this.#round;
  }

  /** One after the other: each is a transaction, and there is one connection. @throws Problem */
  withDatabase<T>(work: (database: PostgresServer) => Promise<T>, round = this.#round): Promise<T> {
    const done = this.#last.then(async () => {
      if (round !== this.#round) throw new Problem('Nobody looks any more.');
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

  /** A node that is down is connected to again now and then, while the others answer. @throws Problem */
  async withRedis<T>(work: (redis: RedisServers) => Promise<T>): Promise<T> {
    this.#redis ??= redisUrls(this.#context, this.#options).then((urls) => connect(this.#context, urls));
    const opened = this.#redis;
    const working = opened.then(work);
    this.#usingRedis.add(working);
    try {
      const answer = await working;
      const isPartial = (await opened).servers.some(({ failure }) => failure !== undefined);
      if (isPartial && this.#redis === opened && now() - this.#renewedAt >= RENEW_EVERY) this.#renewRedis();
      return answer;
    } catch (error) {
      if (this.#redis === opened) this.#closeRedis();
      throw error;
    } finally {
      this.#usingRedis.delete(working);
    }
  }

  /** The next work connects anew. The present connections are closed when the work on them has ended. */
  #renewRedis(): void {
    this.#renewedAt = now();
    const opened = this.#redis;
    this.#redis = undefined;
    const close = () => opened?.then((redis) => redis.close()).catch(() => {});
    void Promise.allSettled(this.#usingRedis).then(close);
  }

  close(): void {
    this.#round++;
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
