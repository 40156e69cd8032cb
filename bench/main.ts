// npm run bench [-- scenario …]
import { command, contestantsIn, wholeNumber } from './arguments.js';
import type { Contestant } from './contestants/contestant.js';
import { CONTESTANTS } from './contestants/index.js';
import { WARM_UP } from './measure/warm-up.js';
import { write } from './report/write.js';
import { bench } from './run.js';
import { SCENARIOS } from './scenarios/index.js';

const QUICK_WARM_UP = 3;

interface Options {
  readonly quick?: true;
  readonly contestants?: readonly Contestant[];
  readonly seed: number;
  readonly warmUp?: number;
  readonly out: string;
  readonly list?: true;
}

const program = command('npm run bench --')
  .description('Measures $withLock against what one would use instead, on servers of its own.')
  .argument('[scenario...]', `of: ${SCENARIOS.map(({ name }) => name).join(', ')}`)
  .option('--quick', 'every part once and small: shows that it runs, measures nothing')
  .option('--contestants <names>', 'only these, with commas between them', contestantsIn)
  .option('--seed <number>', 'of what is drawn at random', wholeNumber, 1)
  .option('--warm-up <sales>', `sales of each contestant before it is measured (default: ${WARM_UP})`, wholeNumber)
  .option('--out <directory>', 'where report.json and report.html go', 'bench-report')
  .option('--list', 'say what there is, and measure nothing')
  .action(main);

await program.parseAsync();

async function main(names: readonly string[], options: Options): Promise<void> {
  if (options.list) {
    for (const { name, about } of SCENARIOS) console.log(`${name}: ${about}`);
    return console.log(`Contestants: ${CONTESTANTS.map(({ name }) => name).join(', ')}`);
  }
  const unknown = names.find((name) => !SCENARIOS.some((scenario) => scenario.name === name));
  if (unknown !== undefined) program.error(`There is no scenario ${unknown}; --list shows all.`);
  const scenarios = SCENARIOS.filter(({ name }) => names.length === 0 || names.includes(name));
  const { contestants = CONTESTANTS, seed, quick = false } = options;
  const warmUp = options.warmUp ?? (quick ? QUICK_WARM_UP : WARM_UP);
  const report = await bench({ scenarios, contestants, quick, seed, warmUp }, console.log);
  console.log(`\nseed ${seed}; ${write(report, options.out).join(', ')}`);
  if (report.scenarios.some(({ error }) => error !== undefined)) process.exitCode = 1;
}
