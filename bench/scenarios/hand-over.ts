import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from '../contestants/contestant.js';
import type { Site } from '../house.js';
import { farAway } from '../measure/far-away.js';
import { inTurn } from '../measure/interleave.js';
import { leaseHandOver } from '../measure/lease-hand-over.js';
import { seeded } from '../measure/random.js';
import { rounds } from '../measure/rounds.js';
import { summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import { type Remote, withRemotes } from '../workers/remote.js';
import type { SellerVerbs } from '../workers/seller.worker.js';
import type { Run, Scenario } from './scenario.js';

/** How long the waiting process waits before its turn comes; ms. At random, since those who look every so often would else be in step. */
const WAITS = { least: 20, most: 60 };

/** Hand-overs ahead of the measured ones. */
const WARM_HAND_OVERS = 400;
/** Rounds of all contestants, so that whatever else the machine does falls on all of them alike. */
const ROUNDS = 12;
const OPENINGS = 3;
const HAND_OVERS = 10;
/** No round begins later; ms. */
const BUDGET = 60_000;

type Seller = Remote<SellerVerbs>;

export const handOver: Scenario = {
  name: 'hand-over',
  about: "from one process's release to another process's start of work, two processes in turn",
  async run(stage, run) {
    run.step('the lease alone');
    const lease = await leaseHandOver(stage, run);
    return [lease, await betweenTwo('Between two processes', stage, stage.site, run)];
  },
};

export const handOverDistant: Scenario = {
  name: 'hand-over-distant',
  about: 'the same between two processes, with PostgreSQL and Redis a network away',
  run: (stage, run) =>
    farAway(stage, async ({ site }, roundTrip) => [
      await betweenTwo(`Between two processes, ${roundTrip} ms from the servers`, stage, site, run),
    ]),
};

function betweenTwo(title: string, stage: Stage, site: Site, run: Run): Promise<Table> {
  return withRemotes<SellerVerbs, Table>('./seller.worker.ts', site, 2, async ([one, other]) => {
    const pairs: Pair[] = [];
    for (const contestant of run.few.filter(({ waits }) => waits !== 'nowhere')) {
      run.step(`${contestant.name} warms up`);
      const pair = await Pair.of(stage, contestant, [one as Seller, other as Seller], seeded(run.seed));
      await pair.warmUp(run.warmUp, run.size(WARM_HAND_OVERS, 1));
      pairs.push(pair);
    }
    for (const round of rounds(run.size(ROUNDS, 1), BUDGET)) {
      for (const pair of inTurn(pairs, round)) {
        run.step(`round ${round + 1} of ${ROUNDS}, ${pair.contestant.name}`);
        await pair.play(run.size(OPENINGS, 1), run.size(HAND_OVERS, 3));
      }
    }
    const rows = await Promise.all(pairs.map((pair) => pair.row()));
    const chart = { kind: 'bar', label: 'contestant', value: 'from release, ms', logarithmic: true } as const;
    return { title, note: NOTE, rows, chart };
  });
}

const NOTE =
  'From release: from the moment before the lock is given back, which is after COMMIT, to the entry of the other ' +
  "process's work, which is after its BEGIN (and, for $withLock, its admission). Where Postgres is the lock, COMMIT gives " +
  'it back, before its answer is here: a negative figure. From the end of the work: COMMIT is in it, for all of them. ' +
  'Opening: from the call to the entry of the work where nobody else has the key. Beyond opening: what the waiting itself ' +
  'added, release minus opening. Round trip: a PING from the holding process, before each release.';

/** When the work of the holder ended, its lock was given back, and the work of the contender began; ms. */
interface Times {
  readonly ended: number;
  readonly released: number;
  readonly began: number;
}

/** Two processes that hand one key to each other. */
class Pair {
  readonly contestant: Contestant;
  readonly #tally: Tally;
  readonly #processes: readonly [Seller, Seller];
  readonly #random: () => number;
  readonly #fromRelease: number[] = [];
  readonly #fromEnd: number[] = [];
  readonly #opening: number[] = [];
  readonly #pings: number[] = [];

  private constructor(
    contestant: Contestant,
    tally: Tally,
    processes: readonly [Seller, Seller],
    random: () => number,
  ) {
    this.contestant = contestant;
    this.#tally = tally;
    this.#processes = processes;
    this.#random = random;
  }

  static async of(stage: Stage, contestant: Contestant, processes: readonly [Seller, Seller], random: () => number) {
    return new Pair(contestant, await Tally.of(stage, contestant), processes, random);
  }

  /** Calls of each process alone, and hand-overs: what runs only while a caller waits has to be compiled, too. */
  async warmUp(calls: number, handOvers: number): Promise<void> {
    for (const remote of this.#processes) this.#sold(await remote.ask('warmUp', { ...this.#task, count: calls }));
    await this.#handOver(handOvers, async () => () => {});
  }

  /** Some calls where nobody else has the key, then so many hand-overs. */
  async play(openings: number, handOvers: number): Promise<void> {
    const [one] = this.#processes;
    for (let count = 0; count < openings; count++) {
      await sleep(WAITS.least);
      const { asked, began } = await one.ask('take', this.#task);
      this.#opening.push(began - asked);
      await one.ask('letGo', null);
      this.#sold(1);
    }
    await this.#handOver(handOvers, async (holder) => {
      await sleep(WAITS.least + this.#random() * (WAITS.most - WAITS.least));
      this.#pings.push(await holder.ask('ping', null));
      return ({ ended, released, began }) => {
        this.#fromEnd.push(began - ended);
        this.#fromRelease.push(began - released);
      };
    });
  }

  /** Lets the key go to and fro. `ahead` runs before each release, and returns what takes its times. */
  async #handOver(count: number, ahead: (holder: Seller) => Promise<(times: Times) => void>): Promise<void> {
    let [holder, contender] = this.#processes;
    await holder.ask('take', this.#task);
    for (let done = 0; done < count; done++) {
      const taken = contender.ask('take', this.#task);
      const note = await ahead(holder);
      const [{ ended, released }, { began }] = await Promise.all([holder.ask('letGo', null), taken]);
      note({ ended, released, began });
      [holder, contender] = [contender, holder];
    }
    await holder.ask('letGo', null);
    this.#sold(count + 1);
  }

  async row() {
    const release = summary(this.#fromRelease);
    const roundTrip = summary(this.#pings).median;
    const beyond = release.median - summary(this.#opening).median;
    return {
      contestant: this.contestant.name,
      'from release, ms': release.median,
      'p99 ms': release.p99,
      'in round trips': release.median / roundTrip,
      'from end of work, ms': summary(this.#fromEnd).median,
      'opening, ms': summary(this.#opening).median,
      'beyond opening, ms': beyond,
      'beyond, in round trips': beyond / roundTrip,
      'round trip, ms': roundTrip,
      'hand-overs': this.#fromRelease.length,
      ...(await this.#tally.columns()),
    };
  }

  get #task() {
    return { contestant: this.contestant.name, sale: this.#tally.sale };
  }

  #sold(ok: number): void {
    this.#tally.add({ ok, failed: {} });
  }
}
