// npm run bench [-- scenario …]
import { Command, InvalidArgumentError } from 'commander';
import { CONTESTANTS, contestantOf } from './contestants/index.js';
import { WARM_UP } from './measure/warm-up.js';
import { write } from './report/write.js';
import { bench } from './run.js';
import { SCENARIOS } from './scenarios/index.js';

const QUICK_WARM_UP = 3;

interface Options {
  readonly quick?: true;
  readonly contestants?: readonly string[];
  readonly seed: number;
  readonly warmUp?: number;
  readonly out: string;
  readonly list?: true;
}

const program = new Command('npm run bench --')
  .description('Measures $withLock against what one would use instead, on servers of its own.')
  .argument('[scenario...]', `of: ${SCENARIOS.map(({ name }) => name).join(', ')}`)
  .option('--quick', 'every part once and small: shows that it runs, measures nothing')
  .option('--contestants <names>', 'only these, with commas between them', (text) => text.split(','))
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
  if (unknown !== undefined) program.error(`There is no scenario ${unknown}; --list shows all.`, { exitCode: 2 });
  const contestants = options.contestants?.map(named) ?? CONTESTANTS;
  const scenarios = SCENARIOS.filter(({ name }) => names.length === 0 || names.includes(name));
  const { seed, quick = false } = options;
  const warmUp = options.warmUp ?? (quick ? QUICK_WARM_UP : WARM_UP);
  const report = await bench({ scenarios, contestants, quick, seed, warmUp }, console.log);
  console.log(`\nseed ${seed}; ${write(report, options.out).join(', ')}`);
  if (report.scenarios.some(({ error }) => error !== undefined)) process.exitCode = 1;
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
