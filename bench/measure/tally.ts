import type { Contestant } from '../contestants/contestant.js';
import type { Rows, Stage } from '../servers.js';
import type { Burst } from './burst.js';

/** Keeps account of one contestant's rows: what it reported against what is really gone. */
export class Tally {
  readonly key: string;
  readonly #rows: Rows;
  readonly #failed: Record<string, number> = {};
  #ok = 0;

  private constructor(rows: Rows) {
    this.#rows = rows;
    this.key = `stock:${rows.ids[0]}`;
  }

  static async of(stage: Stage, contestant: Contestant, rows = 1): Promise<Tally> {
    return new Tally(await stage.rows(contestant, rows));
  }

  get ids(): readonly number[] {
    return this.#rows.ids;
  }

  /** The first row, under a key of its own. */
  get sale(): { key: string; id: number } {
    return this.saleOf(0);
  }

  saleOf(index: number): { key: string; id: number } {
    const id = this.#rows.ids[index] as number;
    return { key: `stock:${id}`, id };
  }

  add({ ok, failed }: Pick<Burst, 'ok' | 'failed'>): void {
    this.#ok += ok;
    for (const [name, count] of Object.entries(failed)) this.#failed[name] = (this.#failed[name] ?? 0) + count;
  }

  /** What its table shows: less than nothing is lost where a failed sale was made all the same. */
  async columns(): Promise<{ 'lost updates': number; errors: string }> {
    const lost = this.#ok - (await this.#rows.sold());
    const errors = Object.entries(this.#failed).map(([name, count]) => `${count} × ${name}`);
    return { 'lost updates': lost, errors: errors.join(', ') };
  }
}
