import type { Contestant } from '../contestants/contestant.js';
import { withLockAlone } from '../contestants/index.js';
import { alone, type Burst, burst, together } from '../measure/burst.js';
import { CommandCounter, inWords, total } from '../measure/commands.js';
import { stamp } from '../measure/stamp.js';
import { Tally } from '../measure/tally.js';
import { waiting } from '../measure/waiting.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import { withRemotes } from '../workers/remote.js';
import type { SellerVerbs } from '../workers/seller.worker.js';
import type { Run, Scenario } from './scenario.js';

const PROCESSES = 4;
const CALLERS = 16;
const NOTICE = 50;

export const commands: Scenario = {
  name: 'commands',
  about: 'Redis commands as the clients send them; what a script does on the server is not counted',
  async run(stage, run) {
    const counter = await CommandCounter.start(stage.site.redis);
    try {
      const contestants = run.few.filter(({ waits }) => waits === 'redis');
      return [
        await bySale(
          'One caller, uncontended',
          stage,
          counter,
          contestants,
          run.size(100, 10),
          async (contestant, tally) => alone(await stage.house.seller(contestant), tally.sale, run.size(100, 10)),
        ),
        await bySale(
          '64 callers of one process on one key',
          stage,
          counter,
          contestants,
          64,
          async (contestant, tally) =>
            burst(
              await stage.house.seller(contestant),
              Array.from({ length: 64 }, () => tally.sale),
            ),
        ),
        await fromProcesses(stage, counter, contestants),
        await whileWaiting(stage, run),
      ];
    } finally {
      counter.stop();
    }
  },
};

type Met = Pick<Burst, 'ok' | 'failed'>;

async function bySale(
  title: string,
  stage: Stage,
  counter: CommandCounter,
  contestants: readonly Contestant[],
  sales: number,
  sell: (contestant: Contestant, tally: Tally) => Promise<Met>,
): Promise<Table> {
  const rows = [];
  for (const contestant of contestants) {
    const tally = await Tally.of(stage, contestant);
    // What is sent once, such as a script's text, belongs to no sale.
    tally.add(await alone(await stage.house.seller(contestant), tally.sale, 5));
    await counter.reset();
    tally.add(await sell(contestant, tally));
    const counts = await counter.counts();
    rows.push({
      contestant: contestant.name,
      'commands a sale': total(counts) / sales,
      commands: inWords(counts),
      ...(await tally.columns()),
    });
  }
  const chart = { kind: 'bar', label: 'contestant', value: 'commands a sale', logarithmic: true } as const;
  return { title, note: `${sales} sales.`, rows, chart };
}

async function fromProcesses(
  stage: Stage,
  counter: CommandCounter,
  contestants: readonly Contestant[],
): Promise<Table> {
  return await withRemotes<SellerVerbs, Table>('./seller.worker.ts', stage.site, PROCESSES, async (remotes) => {
    // First the scripts and connections of all workers: two callers wait for each other, so that one subscribes.
    for (const contestant of contestants) {
      const { sale } = await Tally.of(stage, contestant);
      const task = { contestant: contestant.name, sale, callers: 2, at: 0 };
      await Promise.all(remotes.map((remote) => remote.ask('burst', task)));
    }
    const title = `${PROCESSES} processes with ${CALLERS} callers each on one key`;
    return await bySale(title, stage, counter, contestants, PROCESSES * CALLERS, async ({ name }, { sale }) => {
      const at = stamp() + NOTICE;
      const task = { contestant: name, sale, callers: CALLERS, at };
      return together(await Promise.all(remotes.map((remote) => remote.ask('burst', task))));
    });
  });
}

async function whileWaiting(stage: Stage, run: Run): Promise<Table> {
  const callers = run.size(500, 50);
  run.step(`${callers} waiting callers`);
  const waited = await waiting(stage, withLockAlone, callers, run.size(2_500, 500));
  const row = {
    contestant: withLockAlone.name,
    'commands/s': waited?.commandsPerSecond ?? Number.NaN,
    commands: waited?.verbs ?? '',
  };
  return { title: `${callers} waiting callers, nobody releases`, note: 'idle-waiters has the others.', rows: [row] };
}
