import type { Sale, Seller } from '../contestants/contestant.js';
import { stamp } from './stamp.js';

/** What a number of callers met who all came at once, each with one sale. */
export interface Burst {
  /** By a clock that all processes share; ms. */
  readonly start: number;
  readonly end: number;
  readonly ok: number;
  /** How often each error came. */
  readonly failed: Readonly<Record<string, number>>;
  /** In the order in which the turns began: who it was, by the order of asking, and when. */
  readonly turns: ReadonlyArray<{ readonly caller: number; readonly at: number }>;
}

export async function burst(seller: Seller, sales: readonly Sale[]): Promise<Burst> {
  const turns: Array<{ caller: number; at: number }> = [];
  const failed: Record<string, number> = {};
  let ok = 0;
  const start = stamp();
  await Promise.all(
    sales.map(async (sale, caller) => {
      const began = () => {
        turns.push({ caller, at: stamp() });
        return sale.began?.();
      };
      try {
        await seller.sell({ ...sale, began });
        ok++;
      } catch (error) {
        const name = nameOf(error);
        failed[name] = (failed[name] ?? 0) + 1;
      }
    }),
  );
  return { start, end: stamp(), ok, failed, turns };
}

/** The same sale over and over, by one caller. */
export async function alone(seller: Seller, sale: Sale, count: number): Promise<Burst> {
  const start = stamp();
  for (let done = 0; done < count; done++) await seller.sell(sale);
  return { start, end: stamp(), ok: count, failed: {}, turns: [] };
}

/** Sales a second. */
export function rate({ ok, start, end }: Pick<Burst, 'ok' | 'start' | 'end'>): number {
  return (ok * 1_000) / (end - start);
}

/** Several processes' bursts as one. */
export function together(bursts: readonly Burst[]): Pick<Burst, 'start' | 'end' | 'ok' | 'failed'> {
  const failed: Record<string, number> = {};
  for (const [name, count] of bursts.flatMap((one) => Object.entries(one.failed))) {
    failed[name] = (failed[name] ?? 0) + count;
  }
  return {
    start: Math.min(...bursts.map(({ start }) => start)),
    end: Math.max(...bursts.map(({ end }) => end)),
    ok: bursts.reduce((sum, { ok }) => sum + ok, 0),
    failed,
  };
}

/** By which errors are counted: the code where it has one. */
export function nameOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return String(code ?? name ?? error);
}
