import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.js';
import type { Actor } from './actor.js';
import { PROGRESS_WITHIN } from './check.js';
import { monotonic } from './clock.js';
import type { Fault } from './fault.js';
import { assemble } from './gather.js';
import type { Calm, History, Strike } from './history.js';
import type { Go, Product } from './messages.js';
import type { Stage } from './servers-and-workers.js';
import { WAYS_OF_THE_PACKAGE, type WayName } from './ways/index.js';

export interface RoundOptions {
  readonly seed: string;
  readonly ways?: readonly WayName[];
  readonly keys?: number;
  readonly callers?: number;
}

/** The longest that a call of the workload may take: its wait, its work, and what the package needs for an outcome. */
const SETTLES_WITHIN = 25_000;
/** Longer than any lease of the workload. */
const GONE_WITHIN = 2_000;

/** Workers at work on keys of their own, the faults that struck them, and the history of it all. */
export class Round {
  readonly #stage: Stage;
  readonly #directory: string;
  readonly #from = monotonic();
  readonly #strikes: Strike[] = [];
  readonly #calms: Calm[] = [];
  readonly #taken = new Set<string>();

  static async begin(stage: Stage, { seed, ways, keys = 3, callers = 3 }: RoundOptions): Promise<Round> {
    const directory = join(stage.directory, seed);
    mkdirSync(directory);
    const names = Array.from({ length: keys }, (_, index) => `${seed}:key${index + 1}`);
    const products = await Promise.all(names.map((name) => stage.product(name)));
    const go: Go = { type: 'go', seed, products, callers, ways: ways ?? WAYS_OF_THE_PACKAGE, journals: directory };
    const round = new Round(stage, directory, products);
    await Promise.all(stage.actors.map((actor) => actor.go(go)));
    return round;
  }

  private constructor(
    stage: Stage,
    directory: string,
    readonly products: readonly Product[],
  ) {
    this.#stage = stage;
    this.#directory = directory;
  }

  /** Resolves to whether the fault has struck: it may not be possible here, or its place taken by another one. */
  async strike(fault: Fault, actor: Actor, ms: number): Promise<boolean> {
    const target = fault.place === 'redis' || fault.place === 'postgres' ? fault.place : `${actor.name} ${fault.place}`;
    const from = monotonic();
    let struck = false;
    if (fault.unavailable?.() === undefined && !this.#taken.has(target)) {
      this.#taken.add(target);
      try {
        struck = await fault.strike(this.#stage, actor, ms);
      } finally {
        this.#taken.delete(target);
      }
    }
    this.#strikes.push({ fault: fault.name, target, from, to: monotonic(), missed: !struck });
    return struck;
  }

  /** The faults have stopped: everybody gets something done. If not it resolves to false, and the checker says who. */
  async calm(): Promise<boolean> {
    const { actors } = this.#stage;
    this.#calms.push({ from: monotonic(), callers: actors.flatMap(({ callers }) => callers) });
    for (const actor of actors) actor.tell({ type: 'prove' });
    const proven = await Promise.all(actors.map((actor) => actor.answers('proven', PROGRESS_WITHIN)));
    return proven.every((each) => each);
  }

  /** Lets everybody rest, and looks at what is left. */
  async end(): Promise<History> {
    for (const actor of this.#stage.actors) actor.tell({ type: 'rest' });
    const rested = await Promise.all(this.#stage.actors.map((actor) => actor.answers('resting', SETTLES_WITHIN)));
    const left = await this.#left();
    const history = await assemble(this.#stage, this.#directory, {
      products: this.products,
      from: this.#from,
      to: monotonic(),
      strikes: this.#strikes,
      calms: this.#calms,
      left,
    });
    // Whoever hangs is in the history; the next round begins with somebody else.
    for (const [index, actor] of this.#stage.actors.entries()) {
      if (rested[index]) continue;
      await actor.die();
      await actor.enter();
    }
    return history;
  }

  /** What does not go away within the time of any lease. */
  async #left(): Promise<History['left']> {
    let left: History['left'] = { idleInTransaction: [], leases: [] };
    await eventually(
      'nothing is left',
      async () => {
        left = { idleInTransaction: await this.#idleInTransaction(), leases: await this.#stage.leases() };
        return left.idleInTransaction.length + left.leases.length === 0;
      },
      { within: GONE_WITHIN },
    ).catch(() => {});
    return left;
  }

  async #idleInTransaction(): Promise<string[]> {
    const { rows } = await this.#stage.database.query<{ what: string }>(
      `SELECT application_name || ', for ' || clock_timestamp() - state_change || ': ' || query AS what
       FROM pg_stat_activity WHERE usename = 'shop_app' AND state LIKE 'idle in transaction%'`,
    );
    return rows.map(({ what }) => what);
  }
}
