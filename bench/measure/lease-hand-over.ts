import type { Table } from '../report/result.js';
import type { Stage } from '../stage.js';
import type { LeaseTurn, LeaseVerbs } from '../workers/lease.worker.js';
import { withRemotes } from '../workers/remote.js';
import { summary } from './statistics.js';

/** From the moment before a lease is given back to the moment in which the other process has it. */
export async function leaseHandOver(stage: Stage, turns: number): Promise<Table> {
  const both = await withRemotes<LeaseVerbs, LeaseTurn[][]>(
    './lease.worker.ts',
    stage.site,
    2,
    async (remotes) => await Promise.all(remotes.map((remote) => remote.ask('turns', turns))),
  );
  const inOrder = both
    .flatMap((own, process) => own.map((turn) => ({ ...turn, process })))
    .sort((one, other) => one.began - other.began);
  const waits: number[] = [];
  for (const [index, turn] of inOrder.entries()) {
    const before = inOrder[index - 1];
    if (before && before.process !== turn.process) waits.push(turn.began - before.left);
  }
  const handOver = summary(waits);
  const roundTrip = summary(inOrder.map((turn) => turn.roundTrip)).median;
  return {
    title: 'The lease alone, between two processes',
    note:
      'From before the release is sent until the other process has the lease. Round trip: a PING from the process that ' +
      'holds it, before each release.',
    rows: [
      {
        'median ms': handOver.median,
        'p99 ms': handOver.p99,
        'round trip, ms': roundTrip,
        'in round trips': handOver.median / roundTrip,
        'hand-overs': waits.length,
      },
    ],
  };
}
