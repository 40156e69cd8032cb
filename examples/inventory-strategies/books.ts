import { Redis } from 'ioredis';
import pg from 'pg';
import type { Entry } from './strategies/index.js';
import { quantityIn } from './strategies/strategy.js';

/** The stock as the judge sees it: past every lock, and in both places where a strategy may keep it. */
export class Books {
  readonly #pool: pg.Pool;
  readonly #redis: Redis;

  constructor(databaseUrl: string, redisUrl: string) {
    this.#pool = new pg.Pool({ connectionString: databaseUrl });
    this.#redis = new Redis(redisUrl);
    // Between two runs nobody waits for a query that could report it.
    this.#pool.on('error', () => {});
    this.#redis.on('error', () => {});
  }

  /** A product of its own for one run. Its id is also its key in Redis. */
  async newProduct(name: string, quantity: number): Promise<number> {
    const sql = 'INSERT INTO "Stock" (product, quantity) VALUES ($1, $2) RETURNING id';
    const id = await this.#number(sql, [name, quantity]);
    await this.#redis.set(quantityIn(id), quantity);
    return id;
  }

  /** Units that are left, by the place where the strategy keeps them. */
  async left(stockId: number, stockIn: Entry['stockIn']): Promise<number> {
    if (stockIn === 'Redis') return Number(await this.#redis.get(quantityIn(stockId)));
    return await this.#number('SELECT quantity FROM "Stock" WHERE id = $1', [stockId]);
  }

  orders(stockId: number): Promise<number> {
    return this.#number('SELECT count(*)::int FROM "Order" WHERE "stockId" = $1', [stockId]);
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    await this.#pool.end();
  }

  async #number(sql: string, values: readonly unknown[]): Promise<number> {
    const { rows } = await this.#pool.query<unknown[]>({ text: sql, values: [...values], rowMode: 'array' });
    return Number(rows[0]?.[0]);
  }
}
