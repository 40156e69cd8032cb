import type { FaultProxy } from '../../fault-proxy.js';
import type { Lines } from '../actor.js';
import { type Fault, lasting, type Place, sudden } from '../fault.js';

/** More than Redis and Postgres get to answer. */
const BEYOND_EVERY_TIMEOUT = 2_500;

/** To one connection of one worker, or all of a kind. */
export const LINES: readonly Fault[] = [
  ...faultsOf('Postgres', 'postgres line', ({ postgres }) => postgres),
  ...faultsOf('Redis command', 'redis line', ({ commands }) => commands),
  ...faultsOf('Redis subscriber', 'redis line', ({ wakeUps }) => wakeUps),
  commitFault('connection cut before COMMIT', (line) => line.cutBeforeCommit()),
  commitFault('connection cut after COMMIT', (line) => line.cutAfterCommit()),
  commitFault('answer to COMMIT withheld', (line) => line.holdCommitReply(), BEYOND_EVERY_TIMEOUT),
];

function faultsOf(name: string, place: Place, lineOf: (lines: Lines) => FaultProxy): Fault[] {
  const silent = (way: string, hurt: (line: FaultProxy) => void) =>
    lasting(
      `${name} line ${way}`,
      place,
      (_, { lines }) => hurt(lineOf(lines)),
      (_, { lines }) => lineOf(lines).resume(),
    );
  return [
    silent('silent to the server', (line) => line.silence('toServer')),
    silent('silent to the client', (line) => line.silence('toClient')),
    sudden(`${name} line reset`, place, async (_, { lines }) => lineOf(lines).reset()),
    lasting(
      `${name} line slow`,
      place,
      (_, { lines }) => lineOf(lines).latency(60),
      (_, { lines }) => lineOf(lines).latency(0),
    ),
    lasting(
      `${name} line refused`,
      place,
      async (_, { lines }) => {
        await lineOf(lines).refuse();
        lineOf(lines).reset();
      },
      (_, { lines }) => lineOf(lines).refuse(false),
    ),
    {
      name: `${name} replies late beyond every timeout`,
      place,
      async strike(_, { lines }) {
        lineOf(lines).latency(BEYOND_EVERY_TIMEOUT, 'toClient');
        await new Promise((resolve) => setTimeout(resolve, BEYOND_EVERY_TIMEOUT));
        lineOf(lines).latency(0);
        return true;
      },
    },
  ];
}

/** `silence`: how long nothing more comes over this line. */
function commitFault(name: string, arm: (line: FaultProxy) => Promise<void>, silence = 0): Fault {
  return {
    name,
    place: 'postgres line',
    async strike(_, { lines }) {
      let struck = false;
      await Promise.race([
        arm(lines.postgres).then(() => {
          struck = true;
        }),
        new Promise((resolve) => setTimeout(resolve, 5_000)),
      ]);
      if (struck && silence > 0) await new Promise((resolve) => setTimeout(resolve, silence));
      lines.postgres.resume();
      return struck;
    },
  };
}
