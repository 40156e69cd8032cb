// npm run soak -- --minutes 20 --seed 7: all faults together, round after round, and the figures.
import { Command, InvalidArgumentError, Option } from 'commander';
import pc from 'picocolors';
import { add, type Figures, figuresOf } from '../test/support/faults/figures.js';
import { Round } from '../test/support/faults/round.js';
import { Stage } from '../test/support/faults/servers-and-workers.js';
import { storm } from '../test/support/faults/storm.js';
import { faultsOf } from '../test/support/faults/table/index.js';
import { WAYS_IN_MEMORY, WAYS_OF_THE_PACKAGE } from '../test/support/faults/ways/index.js';
import { TOPOLOGIES, type TopologyName } from '../test/support/topologies.js';

interface Options {
  readonly minutes: number;
  readonly seed: string;
  readonly firstRound: number;
  readonly roundSeconds: number;
  readonly keys: number;
  readonly callers: number;
  readonly guard: boolean;
  readonly unfenced: boolean;
  readonly topology: TopologyName | 'memory';
}

const program = new Command('soak')
  .description(
    'Workers on a few hot keys, all faults together by a seeded schedule, and the history checked after each round.',
  )
  .option('--minutes <n>', 'how long', positive, 20)
  .option('--seed <text>', 'repeats the schedule of an earlier run', String(Date.now() % 2 ** 31))
  .option('--first-round <n>', 'begins with this one of the seed', positive, 1)
  .option('--round-seconds <n>', 'how long faults strike in each round', positive, 20)
  .option('--keys <n>', 'how many keys all want', positive, 3)
  .option('--callers <n>', 'how many in each of the three workers, or in the one with a memory store', positive, 3)
  .option('--guard', 'the database judges the writes of the fenced model, not the client', false)
  .addOption(new Option('--unfenced', 'the tables have no fence').conflicts('guard').default(false))
  .addOption(
    new Option('--topology <name>', 'how Redis is run')
      .choices([...Object.keys(TOPOLOGIES), 'memory'])
      .default('single'),
  );

// The exit is not left to the event loop: connections that were hurt may linger in it.
process.exit(await soak(program.parse().opts<Options>()));

async function soak(options: Options): Promise<number> {
  const { minutes, seed, firstRound, guard, unfenced, topology } = options;
  const site = topology === 'memory' ? topology : TOPOLOGIES[topology];
  const unavailable = site === 'memory' ? undefined : site.unavailable();
  if (unavailable !== undefined) {
    console.error(unavailable);
    return 2;
  }
  const end = performance.now() + minutes * 60_000;
  const stage = await Stage.open({ guard, fenced: !unfenced, topology: site });
  const servers = `PostgreSQL ${stage.postgres.version}, ${stage.about}, Node ${process.versions.node}`;
  console.log(`seed ${seed} on ${servers}`);
  let rounds = 0;
  let total: Figures | undefined;
  try {
    for (let number = firstRound; performance.now() < end; number++) {
      const figures = await oneRound(stage, `${seed}-${number}`, options);
      console.log(line(`round ${number}`, figures));
      for (const { kind, what } of figures.violations) console.log(pc.red(`  ${kind}: ${what}`));
      rounds++;
      total = total === undefined ? figures : add(total, figures);
    }
  } finally {
    await stage.close();
  }
  if (total === undefined) return 1;
  console.log(`\n${JSON.stringify(total, undefined, 2)}\n\n${line(`seed ${seed}, ${rounds} rounds`, total)}`);
  return total.violations.length === 0 ? 0 : 1;
}

async function oneRound(stage: Stage, seed: string, { roundSeconds, keys, callers, topology }: Options) {
  const ways = topology === 'memory' ? WAYS_IN_MEMORY : WAYS_OF_THE_PACKAGE;
  const round = await Round.begin(stage, { seed, keys, callers, ways });
  const end = performance.now() + roundSeconds * 1_000;
  await storm(stage, round, seed, () => performance.now() > end, faultsOf(topology));
  await round.calm();
  return figuresOf(await round.end());
}

function line(name: string, figures: Figures): string {
  const { committed, operations, strikes, unknown, longestStall, violations } = figures;
  const struck = Object.values(strikes).reduce((sum, each) => sum + each, 0);
  const verdict = violations.length === 0 ? pc.green('0 violations') : pc.red(`${violations.length} violations`);
  return (
    `${name}: ${operations} operations, ${committed} committed, ${struck} faults, ` +
    `${unknown.committed + unknown.rolledBack} of unknown outcome, longest stall ${Math.round(longestStall)} ms, ${verdict}`
  );
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.');
  return value;
}
