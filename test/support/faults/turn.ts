import { setTimeout as sleep } from 'node:timers/promises';
import type { Product } from './messages.js';

/** The part of a transaction's client that the work needs: every way has it. */
export interface WorkTx {
  readonly stock: {
    findUniqueOrThrow(args: { where: { id: number } }): PromiseLike<{ quantity: number }>;
    update(args: { where: { id: number }; data: { quantity: number } }): PromiseLike<unknown>;
  };
  readonly ledger: {
    create(args: {
      data: { key: string; token: bigint; before: number; after: number; worker: string; once: string };
    }): PromiseLike<unknown>;
  };
}

/** `key`: for this one alone, where the way does one after the other. */
export type Work = (tx: WorkTx, token: bigint, key?: string) => Promise<void>;

export interface Plan {
  readonly operation: string;
  readonly worker: string;
  readonly products: readonly Product[];
  /** What is added to each row. */
  readonly add: number;
  /** How long to think between what was read and what is written; milliseconds. */
  think(): number;
}

/** Read, think, write, and leave an entry: for each of the keys. `run` says how often this function was called for the operation. */
export async function turn(tx: WorkTx, token: bigint, plan: Plan, run: number): Promise<void> {
  const { operation, worker, products, add, think } = plan;
  for (const [place, { key, id }] of products.entries()) {
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
    const pause = think();
    if (pause > 0) await sleep(pause);
    await tx.stock.update({ where: { id }, data: { quantity: quantity + add } });
    // Another one for each run: work that is done twice must show, and not be refused.
    const once = `${operation}/${run}/${place}`;
    await tx.ledger.create({ data: { key, token, before: quantity, after: quantity + add, worker, once } });
  }
}
