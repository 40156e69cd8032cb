import { setTimeout as sleep } from 'node:timers/promises';
import type { Contestant } from '../contestants/contestant.js';
import { leaseHandOver } from '../measure/lease-hand-over.js';
import { seeded } from '../measure/random.js';
import { rounds } from '../measure/rounds.js';
import { summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import { WARM_UP } from '../measure/warm-up.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import { type Remote, withRemotes } from '../workers/remote.js';
import type { SellerVerbs } from '../workers/seller.worker.js';
import type { Run, Scenario } from './scenario.js';

/** How long the waiting process waits before its turn comes; ms. At random, since those who look every so often would else be in step. */
const WAITS = { least: 20, most: 60 };

type Seller = Remote<SellerVerbs>;

export const handOver: Scenario = {
  name: 'hand-over',
  about: "from one process's release to another process's start of work, two processes in turn",
  run: (stage, run) =>
    withRemotes<SellerVerbs, Table[]>('./seller.worker.ts', stage.site, 2, async ([one, other]) => {
      run.step('the lease alone');
      const lease = await leaseHandOver(stage, run);
      const rows = [];
      for (const contestant of run.few.filter(({ waits }) => waits !== 'nowhere')) {
        run.step(contestant.name);
        rows.push(await measure(stage, run, contestant, one as Seller, other as Seller));
      }
      const chart = { kind: 'bar', label: 'contestant', value: 'from release, ms', logarithmic: true } as const;
      return [lease, { title: 'Between two processes', note: NOTE, rows, chart }];
    }),
};

const NOTE =
  'From release: from the moment before the lock is given back, which is after COMMIT, to the entry of the other ' +
  "process's work, which is after its BEGIN (and, for $withLock, its admission). Where Postgres is the lock, COMMIT gives " +
  'it back, before its answer is here: a negative figure. From the end of the work: COMMIT is in it, for all of them. ' +
  'Opening: from the call to the entry of the work where nobody else has the key. Beyond opening: what the waiting itself ' +
  'added, release minus opening. Round trip: a PING from the holding process, before each release.';

async function measure(stage: Stage, run: Run, contestant: Contestant, one: Seller, other: Seller) {
  const tally = await Tally.of(stage, contestant);
  const task = { contestant: contestant.name, sale: tally.sale };
  const random = seeded(run.seed);
  const [fromRelease, fromEnd, opening, pings]: [number[], number[], number[], number[]] = [[], [], [], []];
  let ok = 0;
  for (const remote of [one, other]) ok += await remote.ask('warmUp', { ...task, count: run.size(WARM_UP, 3) });

  for (let count = 0; count < run.size(15, 2); count++) {
    await sleep(WAITS.least);
    const { asked, began } = await one.ask('take', task);
    opening.push(began - asked);
    await one.ask('letGo', null);
    ok++;
  }

  let [holder, contender] = [one, other];
  await holder.ask('take', task);
  for (const _ of rounds(run.size(60, 3), run.size(4_000, 1_000))) {
    const taken = contender.ask('take', task);
    await sleep(WAITS.least + random() * (WAITS.most - WAITS.least));
    pings.push(await holder.ask('ping', null));
    const [{ ended, released }, { began }] = await Promise.all([holder.ask('letGo', null), taken]);
    ok++;
    fromEnd.push(began - ended);
    fromRelease.push(began - released);
    [holder, contender] = [contender, holder];
  }
  await holder.ask('letGo', null);
  tally.add({ ok: ok + 1, failed: {} });

  const release = summary(fromRelease);
  const roundTrip = summary(pings).median;
  const beyond = release.median - summary(opening).median;
  return {
    contestant: contestant.name,
    'from release, ms': release.median,
    'p99 ms': release.p99,
    'in round trips': release.median / roundTrip,
    'from end of work, ms': summary(fromEnd).median,
    'opening, ms': summary(opening).median,
    'beyond opening, ms': beyond,
    'beyond, in round trips': beyond / roundTrip,
    'round trip, ms': roundTrip,
    'hand-overs': fromRelease.length,
    ...(await tally.columns()),
  };
}
