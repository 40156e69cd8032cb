import type { Table } from '../report/result.js';
import type { Run } from '../scenarios/scenario.js';
import type { Stage } from '../servers.js';
import type { LeaseTurns, LeaseVerbs } from '../workers/lease.worker.js';
import { type Remote, withRemotes } from '../workers/remote.js';
import { rounds } from './rounds.js';
import { spread, summary } from './statistics.js';

/** For how long everybody sleeps before each thing that is measured; ms. And the turns of each process in a round. */
const PAUSES = [
  { pause: 0, turns: 400 },
  { pause: 3, turns: 60 },
  { pause: 20, turns: 12 },
];
/** Each has run often enough then to be compiled. */
const WARM_UP = { pause: 0, turns: 5_000 };

type Row = Table['rows'][number];

/** Everything that was measured in a round, in ms. */
interface Times {
  readonly begins: number[];
  readonly confirmed: number[];
  readonly messages: number[];
  readonly roundTrips: number[];
}

/** From the moment before a lease is given back to the moment in which the other process goes on. */
export async function leaseHandOver(stage: Stage, run: Run): Promise<Table> {
  const rows = await withRemotes<LeaseVerbs, Row[]>('./lease.worker.ts', stage.site, 2, async (remotes) => {
    await toAndFro(remotes, WARM_UP.pause, run.size(WARM_UP.turns, 5));
    const measured = PAUSES.map(({ pause, turns }) => ({ pause, turns, times: [] as Times[] }));
    for (const _ of rounds(run.size(7, 1), 30_000)) {
      for (const { pause, turns, times } of measured) times.push(await toAndFro(remotes, pause, run.size(turns, 3)));
    }
    return measured.map(({ pause, times }) => row(pause, times));
  });
  return { title: 'The lease alone, between two processes', note: NOTE, rows };
}

// Two yardsticks, because neither alone is fair. The answer to a GET comes back to a process that is awake, often on the
// very core on which Redis runs: it has no wake-up in it, and every hand-over has one. A message goes into Redis and comes
// out to a process that has slept, as the hand-over does; but it is no round trip in the usual sense.
const NOTE =
  'All of it from before the release is sent. Begins: the other process has heard that the key is kept for it, and its ' +
  'transaction is opened, beside the look that confirms it. Confirmed: that look has its answer, without which no work ' +
  'begins. Message: from before a bare PUBLISH until the other process, which sleeps, hears it: no wake-up by message ' +
  'takes less. Round trip: a GET by the process that holds the lease. Message, round trip and release each come ' +
  'when both processes and Redis have slept for the pause. Ratios are medians over the rounds, each within its own.';

async function toAndFro(remotes: ReadonlyArray<Remote<LeaseVerbs>>, pause: number, count: number): Promise<Times> {
  const asked = remotes.map((remote, me) => remote.ask('turns', { me: me === 0 ? 0 : 1, count, pause }));
  return times(await Promise.all(asked));
}

function times(both: readonly LeaseTurns[]): Times {
  const inOrder = both
    .flatMap(({ turns }, process) => turns.map((turn) => ({ ...turn, process })))
    .sort((one, other) => one.confirmed - other.confirmed);
  const heard = new Map(both.flatMap((one) => one.heard));
  const passed = inOrder.flatMap((turn, index) => {
    const before = inOrder[index - 1];
    // Who did not wait was handed nothing: the last turns of the one that is left over.
    if (before === undefined || before.process === turn.process) return [];
    return [{ begins: turn.began - before.left, confirmed: turn.confirmed - before.left }];
  });
  return {
    begins: passed.map(({ begins }) => begins),
    confirmed: passed.map(({ confirmed }) => confirmed),
    messages: inOrder.flatMap(({ said, message }) => {
      const at = heard.get(message);
      return at === undefined ? [] : [at - said];
    }),
    roundTrips: inOrder.map(({ roundTrip }) => roundTrip),
  };
}

function row(pause: number, all: readonly Times[]): Row {
  const ms = (of: keyof Times) => summary(all.flatMap((each) => each[of]));
  const ratios = (of: keyof Times, to: keyof Times) =>
    all.map((each) => summary(each[of]).median / summary(each[to]).median);
  return {
    'pause, ms': pause,
    'begins, ms': ms('begins').median,
    'p99 ms': ms('begins').p99,
    'in round trips': summary(ratios('begins', 'roundTrips')).median,
    'middle half': spread(ratios('begins', 'roundTrips'), 1),
    'in messages': summary(ratios('begins', 'messages')).median,
    'confirmed, ms': ms('confirmed').median,
    'confirmed, in round trips': summary(ratios('confirmed', 'roundTrips')).median,
    'confirmed, in messages': summary(ratios('confirmed', 'messages')).median,
    'message, ms': ms('messages').median,
    'message, in round trips': summary(ratios('messages', 'roundTrips')).median,
    'round trip, ms': ms('roundTrips').median,
    'hand-overs': all.flatMap(({ begins }) => begins).length,
  };
}
