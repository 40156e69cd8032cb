import { type PostgresServer, type RedisServer, startPostgres, startRedis } from '../../test/support/servers/index.js';
import { setUpShop } from '../../test/support/shop-database.js';
import { startWorker, type Worker } from '../../test/support/worker.js';
import { Books } from './tally.js';

const WORKERS = 3;

/** What all runs play on: two servers, three shop processes, and the books. */
export interface Scene {
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  readonly databaseUrl: string;
  readonly workers: readonly Worker[];
  readonly books: Books;
}

/** Keeps what was started, so that all of it can be stopped at any moment, also half-way through the start. */
export class Stage {
  readonly #stops: Array<() => Promise<unknown>> = [];

  async open(): Promise<Scene> {
    // They take a second to load, as the servers do.
    const workers = Array.from({ length: WORKERS }, () => startWorker(new URL('worker.ts', import.meta.url)));
    this.#stops.push(...workers.map((worker) => () => worker.kill()));
    const [{ postgres, databaseUrl }, redis] = await Promise.all([this.#openDatabase(), this.#openRedis()]);
    const books = new Books(postgres.url);
    this.#stops.push(() => books.close());
    return { postgres, redis, databaseUrl, workers, books };
  }

  /** Closes it before everything that is there already. */
  closeLater(close: () => Promise<unknown>): void {
    this.#stops.push(close);
  }

  /** In the reverse order, one by one: a server that is gone before its clients makes them complain. */
  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }

  async #openDatabase() {
    const postgres = await startPostgres();
    this.#stops.unshift(() => postgres.stop());
    return { postgres, databaseUrl: await setUpShop(postgres) };
  }

  async #openRedis() {
    const redis = await startRedis({ allowEmulator: true });
    this.#stops.unshift(() => redis.stop());
    return redis;
  }
}
