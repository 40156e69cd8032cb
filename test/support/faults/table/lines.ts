import { setTimeout as sleep } from 'node:timers/promises';
import type { Direction, FaultProxy } from '../../fault-proxy.js';
import { type Fault, lasting, type Place, sudden } from '../fault.js';
import type { Lines } from '../lines.js';

/** More than Redis and Postgres get to answer. */
const BEYOND_EVERY_TIMEOUT = 2_500;

/** To one connection of one worker, or all of a kind. */
export const LINES: readonly Fault[] = [
  ...ofEachLine((line) => silence(line, 'toServer')),
  ...ofEachLine((line) => silence(line, 'toClient')),
  ...ofEachLine(reset),
  ...ofEachLine(slowness),
  ...ofEachLine(refusal),
  ...ofEachLine(lateness),
  commitFault('connection cut before COMMIT', (line) => line.cutBeforeCommit()),
  commitFault('connection cut after COMMIT', (line) => line.cutAfterCommit()),
  commitFault('answer to COMMIT withheld', (line) => line.holdCommitReply(), BEYOND_EVERY_TIMEOUT),
];

interface Line {
  readonly name: string;
  readonly place: Place;
  of(lines: Lines): FaultProxy;
}

function ofEachLine(fault: (line: Line) => Fault): Fault[] {
  const each: Line[] = [
    { name: 'Postgres line', place: 'postgres line', of: ({ postgres }) => postgres },
    { name: 'Redis command line', place: 'redis line', of: ({ commands }) => commands },
    { name: 'Redis subscriber line', place: 'redis line', of: ({ wakeUps }) => wakeUps },
  ];
  return each.map(fault);
}

function silence({ name, place, of }: Line, direction: Direction): Fault {
  return lasting(
    `${name} silent ${direction === 'toServer' ? 'to the server' : 'to the client'}`,
    place,
    (_, { lines }) => of(lines).silence(direction),
    (_, { lines }) => of(lines).resume(),
  );
}

function reset({ name, place, of }: Line): Fault {
  return sudden(`${name} reset`, place, async (_, { lines }) => of(lines).reset());
}

function slowness({ name, place, of }: Line): Fault {
  return lasting(
    `${name} slow`,
    place,
    (_, { lines }) => of(lines).latency(60),
    (_, { lines }) => of(lines).latency(0),
  );
}

function refusal({ name, place, of }: Line): Fault {
  return lasting(
    `${name} refused`,
    place,
    async (_, { lines }) => {
      await of(lines).refuse();
      of(lines).reset();
    },
    (_, { lines }) => of(lines).refuse(false),
  );
}

function lateness({ name, place, of }: Line): Fault {
  return sudden(`${name} with replies later than every timeout`, place, async (_, { lines }) => {
    of(lines).latency(BEYOND_EVERY_TIMEOUT, 'toClient');
    await sleep(BEYOND_EVERY_TIMEOUT);
    of(lines).latency(0);
  });
}

/** `quiet`: how long nothing more comes over this line. */
function commitFault(name: string, arm: (line: FaultProxy) => Promise<void>, quiet = 0): Fault {
  return {
    name,
    place: 'postgres line',
    async strike(_, { lines }) {
      let struck = false;
      await Promise.race([
        arm(lines.postgres).then(() => {
          struck = true;
        }),
        sleep(5_000),
      ]);
      if (struck && quiet > 0) await sleep(quiet);
      lines.postgres.resume();
      return struck;
    },
  };
}
