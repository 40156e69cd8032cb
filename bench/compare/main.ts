// npm run compare [-- --seconds 60]
import { startAll } from '../../test/support/servers/index.js';
import { command, contestantsIn, wholeNumber } from '../arguments.js';
import type { Contestant } from '../contestants/contestant.js';
import { CONTESTANTS } from '../contestants/index.js';
import { Stage } from '../servers.js';
import { compare, type Outcome } from './compare.js';
import { schedule } from './faults.js';
import { details, exitCode, markdown, write } from './report.js';

interface Options {
  readonly seconds: number;
  readonly seed: number;
  readonly contestants?: readonly Contestant[];
  readonly write?: string;
}

await command('npm run compare --')
  .description('Sells by each way of locking under the same faults, and counts what is lost.')
  .option('--seconds <number>', 'for each way', wholeNumber, 60)
  .option('--seed <number>', 'of the faults', wholeNumber, 1)
  .option('--contestants <names>', 'only these, with commas between them', contestantsIn)
  .option('--write <page>', 'puts the table between the marks of this page')
  .action(main)
  .parseAsync();

async function main({ seconds, seed, contestants = CONTESTANTS, write: page }: Options): Promise<void> {
  const terms = { seconds, strikes: schedule(seed, seconds) };
  console.error(`seed ${seed}`);
  // One of its own, which can be hurt: that of REDIS_URL may have other users.
  const stage = await Stage.start(async () => (await startAll(1))[0]);
  try {
    const outcomes: Outcome[] = [];
    for (const contestant of contestants) {
      const outcome = await compare(stage, contestant, terms);
      console.error(details(outcome));
      outcomes.push(outcome);
    }
    const comparison = { ...terms, outcomes, seed, servers: stage.servers };
    console.log(`\n${markdown(comparison)}`);
    if (page !== undefined) write(page, comparison);
    process.exitCode = exitCode(outcomes);
  } finally {
    await stage.stop();
  }
}
