import pg from 'pg';
import type { StrategyName } from './messages.js';

/** What is left of a run: by the database, and by what the buyers were told. */
export interface Tally {
  readonly strategy: StrategyName;
  readonly units: number;
  readonly buyers: number;
  /** Buyers who were told that they had bought. */
  readonly sold: number;
  /** Order rows. */
  readonly orders: number;
  /** What the product's row says is left. */
  readonly left: number;
  readonly refused: number;
  readonly seconds: number;
}

/** Units that never existed. */
export function oversold({ sold, units }: Tally): number {
  return Math.max(0, sold - units);
}

/** Sales that the product's row knows nothing of: their decrement was overwritten. */
export function lost({ sold, units, left }: Tally): number {
  return sold - (units - left);
}

/** Whether exactly what there was has been sold, as far as there were buyers, and the database agrees. */
export function isExact(tally: Tally): boolean {
  const expected = Math.min(tally.units, tally.buyers);
  return tally.sold === expected && tally.orders === expected && oversold(tally) === 0 && lost(tally) === 0;
}

/** The database as the judge sees it: past every lock. */
export class Books {
  readonly #pool: pg.Pool;

  constructor(url: string) {
    this.#pool = new pg.Pool({ connectionString: url });
    // Between two runs nobody waits for a query that could report it.
    this.#pool.on('error', () => {});
  }

  /** A product of its own for one run. */
  async newProduct(name: string, quantity: number): Promise<number> {
    const sql = 'INSERT INTO "Stock" (product, quantity) VALUES ($1, $2) RETURNING id';
    return await this.#number(sql, [name, quantity]);
  }

  orders(stockId: number): Promise<number> {
    return this.#number('SELECT count(*)::int FROM "Order" WHERE "stockId" = $1', [stockId]);
  }

  left(stockId: number): Promise<number> {
    return this.#number('SELECT quantity FROM "Stock" WHERE id = $1', [stockId]);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  async #number(sql: string, values: readonly unknown[]): Promise<number> {
    const { rows } = await this.#pool.query<unknown[]>({ text: sql, values: [...values], rowMode: 'array' });
    return Number(rows[0]?.[0]);
  }
}
