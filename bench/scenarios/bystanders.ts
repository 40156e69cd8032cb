import { setTimeout as sleep } from 'node:timers/promises';
import type { PrismaClient } from '../../test/generated/prisma/client.js';
import { type Contestant, type Seller, work } from '../contestants/contestant.js';
import { nameOf } from '../measure/burst.js';
import { summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import type { Run, Scenario } from './scenario.js';

/** How long each turn of the hot key lasts beside its statements, as if something else were asked meanwhile; ms. */
const HOLD = 5;
/** Requests a second of the steady load. */
const RATE = 300;
/** After a failed sale the caller comes back; ms. */
const BACK_AFTER = 20;

export const bystanders: Scenario = {
  name: 'bystanders',
  about: 'a steady load on other rows through the same pool of 10, while 300 callers queue on one key',
  async run(stage, run) {
    const rows: Array<Table['rows'][number]> = [];
    for (const contestant of run.few.filter(({ waits }) => waits !== 'nowhere')) {
      run.step(contestant.name);
      rows.push(await measure(stage, run, contestant));
    }
    return [
      {
        title: `${run.size(300, 40)} callers on one key, ${RATE} requests a second beside them`,
        note:
          `Each turn of the key takes ${HOLD} ms beside its statements. A request is a bare transaction on a row of its ` +
          'own. p50 counts from when it was sent, p99 from when it was due. × quiet: against the same load without the ' +
          'hot key, before it and between.',
        rows,
        chart: { kind: 'bar', label: 'contestant', value: 'p99 × quiet', logarithmic: true },
      },
    ];
  },
};

async function measure(stage: Stage, run: Run, contestant: Contestant) {
  const seller = await stage.house.seller(contestant);
  const prisma = contestant.prisma?.(stage.house) ?? stage.house.shop(contestant.shop);
  const hot = await Tally.of(stage, contestant);
  const { ids } = await stage.rows(contestant, 500);
  const [quiet, beside] = [new Requests(), new Requests()];
  let turns = 0;
  const pair = async (requests: number) => {
    const without = await steadyLoad(prisma, ids, requests);
    const crowd = new Crowd(seller, hot, run.size(300, 40));
    await crowd.begun;
    const withIt = await steadyLoad(prisma, ids, requests);
    const made = crowd.turns;
    await crowd.leave();
    return { without, withIt, made };
  };
  // What runs for the first time is compiled meanwhile, and would count as the crowd's.
  await pair(run.size(300, 10));
  // In turns, so that whatever else the machine does falls on both.
  for (const requests of run.size([500, 500], [60])) {
    const { without, withIt, made } = await pair(requests);
    quiet.add(without);
    beside.add(withIt);
    turns += made;
  }
  return {
    contestant: contestant.name,
    'p50 ms': beside.p50,
    'p50 × quiet': beside.p50 / quiet.p50,
    'p99 ms': beside.p99,
    'p99 × quiet': beside.p99 / quiet.p99,
    requests: beside.count,
    failed: beside.failed,
    'turns of the key': turns,
    ...(await hot.columns()),
  };
}

/** Callers who come back as soon as they have sold. */
class Crowd {
  readonly begun: Promise<void>;
  turns = 0;
  readonly #all: Promise<unknown>;
  readonly #tally: Tally;
  #left = false;

  constructor(seller: Seller, tally: Tally, callers: number) {
    this.#tally = tally;
    let first: () => void = () => {};
    this.begun = new Promise((resolve) => {
      first = resolve;
    });
    const began = async () => {
      first();
      if (!this.#left) await sleep(HOLD);
    };
    const sell = () => seller.sell({ ...tally.sale, began });
    this.#all = Promise.all(Array.from({ length: callers }, () => this.#keepSelling(sell)));
  }

  async leave(): Promise<void> {
    this.#left = true;
    await this.#all;
  }

  async #keepSelling(sell: () => Promise<void>): Promise<void> {
    while (!this.#left) {
      try {
        await sell();
        this.turns++;
        this.#tally.add({ ok: 1, failed: {} });
      } catch (error) {
        this.#tally.add({ ok: 0, failed: { [nameOf(error)]: 1 } });
        await sleep(BACK_AFTER);
      }
    }
  }
}

/** What became of a number of requests. */
class Requests {
  readonly fromSent: number[] = [];
  readonly fromDue: number[] = [];
  failed = 0;

  get count(): number {
    return this.fromSent.length;
  }

  get p50(): number {
    return summary(this.fromSent).median;
  }

  get p99(): number {
    return summary(this.fromDue).p99;
  }

  add(others: Requests): void {
    this.fromSent.push(...others.fromSent);
    this.fromDue.push(...others.fromDue);
    this.failed += others.failed;
  }
}

/** Requests at fixed times, however long those before take. */
async function steadyLoad(prisma: PrismaClient, ids: readonly number[], requests: number): Promise<Requests> {
  const made = new Requests();
  const request = async (index: number, due: number) => {
    const sent = performance.now();
    try {
      await prisma.$transaction((tx) => work(tx, { key: '', id: ids[index % ids.length] as number }));
    } catch {
      made.failed++;
    }
    const end = performance.now();
    made.fromSent.push(end - sent);
    made.fromDue.push(end - due);
  };
  const start = performance.now();
  const all: Array<Promise<void>> = [];
  for (let index = 0; index < requests; index++) {
    const due = start + (index * 1_000) / RATE;
    await sleep(Math.max(0, due - performance.now()));
    all.push(request(index, due));
  }
  await Promise.all(all);
  return made;
}
