// npm run compare [-- --seconds 60]
import { Command, InvalidArgumentError } from 'commander';
import { startAll } from '../../test/support/servers/index.js';
import { CONTESTANTS, contestantOf } from '../contestants/index.js';
import { Stage } from '../servers.js';
import { compare, type Outcome } from './compare.js';
import { schedule } from './faults.js';
import { type Comparison, details, exitCode, markdown, write } from './report.js';

interface Options {
  readonly seconds: number;
  readonly seed: number;
  readonly contestants?: readonly string[];
  readonly write?: string;
}

const program = new Command('npm run compare --')
  .description(
    'Sells by each way of locking under the same faults, and counts what is lost. A way is a file of bench/contestants.',
  )
  .option('--seconds <number>', 'for each way', wholeNumber, 60)
  .option('--seed <number>', 'of the faults', wholeNumber, 1)
  .option(
    '--contestants <names>',
    `only these, with commas between them: ${CONTESTANTS.map(({ name }) => name).join(',')}`,
    (text) => text.split(','),
  )
  .option('--write <page>', 'puts the table between the marks of this page')
  .action(main);

await program.parseAsync();

async function main({ seconds, seed, contestants: names, write: page }: Options): Promise<void> {
  const contestants = names?.map(named) ?? CONTESTANTS;
  const terms = { seconds, strikes: schedule(seed, seconds) };
  // One of its own, which can be hurt: that of REDIS_URL may have other users.
  const stage = await Stage.start(async () => (await startAll(1))[0]);
  try {
    const outcomes: Outcome[] = [];
    for (const contestant of contestants) {
      outcomes.push(await compare(stage, contestant, terms));
      console.error(details(outcomes.at(-1) as Outcome));
    }
    const comparison: Comparison = { ...terms, outcomes, seed, servers: stage.servers };
    console.log(`\n${markdown(comparison)}`);
    if (page !== undefined) write(page, comparison);
    process.exitCode = exitCode(outcomes);
  } finally {
    await stage.stop();
  }
}

function named(name: string) {
  try {
    return contestantOf(name);
  } catch (error) {
    return program.error((error as Error).message, { exitCode: 2 });
  }
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('It must be a whole number.');
  return number;
}
