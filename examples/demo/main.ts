// One hot product, three shop processes, one of them frozen in the middle of a sale: without a lock, with a plain
// Redis lock, and with `$withLock`.
import { inspect } from 'node:util';
import { openBoard } from './board.js';
import type { StrategyName } from './messages.js';
import { type DemoOptions, parseOptions, USAGE, UsageError } from './options.js';
import { newProgress, type Progress } from './progress.js';
import { conclusion, exitCode, table } from './report.js';
import { run } from './run.js';
import { type Scene, Stage } from './stage.js';
import type { Tally } from './tally.js';
import { colors, say } from './terminal.js';

const STRATEGIES: readonly StrategyName[] = ['no lock', 'plain Redis lock', '$withLock'];
/** Only where the server is ours to kill. */
const WITHOUT_REDIS: StrategyName = '$withLock, Redis killed';
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

async function main(options: DemoOptions): Promise<number> {
  const stage = new Stage();
  const progress = newProgress();
  const ended = untilSignal();
  try {
    return await Promise.race([demo(options, stage, progress, ended), ended]);
  } finally {
    progress.stop();
    await stage.close();
  }
}

async function demo(options: DemoOptions, stage: Stage, progress: Progress, ended: Promise<number>): Promise<number> {
  const { units, buyers, board } = options;
  say(`${buyers} buyers, ${units} units of one product, three shop processes. Starting the servers …`);
  const scene = await stage.open();
  introduce(scene);
  if (board) await showBoard(scene, stage);
  const tallies: Tally[] = [];
  // The others take no lock that a board could show.
  const all = 'killHard' in scene.redis ? [...STRATEGIES, WITHOUT_REDIS] : STRATEGIES;
  for (const strategy of board ? STRATEGIES.slice(-1) : all)
    tallies.push(await run(scene, strategy, options, progress));
  say(`\n${table(tallies)}\n\n${conclusion(tallies)}`);
  if (board) {
    say('\nThe page stays until Ctrl-C.');
    await ended;
  }
  return exitCode(tallies);
}

/** The shops begin when somebody looks. */
async function showBoard(scene: Scene, stage: Stage): Promise<void> {
  const board = await openBoard(scene);
  stage.closeLater(() => board.close());
  say(`\nOpen ${board.url} in a browser: the shops begin when the page is open.`);
  await board.seen;
}

const EMULATOR = colors.yellow(
  'No Redis is installed, so an emulator (js-redis-server) stands in. What is promised rests on Postgres, which is real here:\n' +
    'Redis only lets callers wait. For a real one install redis-server, or set REDIS_URL.',
);

function introduce({ postgres, redis }: Scene): void {
  say(`PostgreSQL ${postgres.version} (${postgres.kind})`);
  if (redis.kind === 'emulator') say(`\n${EMULATOR}`);
  else say(`Redis ${redis.version} (${redis.kind})`);
}

/** Resolves to an exit code. A second signal ends the process at once; what it leaves is then cleaned up by a guard. */
function untilSignal(): Promise<number> {
  return new Promise((resolve) => {
    for (const [signal, code] of Object.entries(SIGNALS)) process.once(signal, () => resolve(code));
    // Whoever read the output has gone, such as `head`: as a signal, SIGPIPE, in other programs.
    process.stdout.on('error', () => resolve(141));
  });
}

async function start(): Promise<number> {
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options !== 'help') return await main(options);
    say(USAGE);
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    process.stderr.write(isUsage ? `${error.message}\n\n${USAGE}\n` : `${inspect(error)}\n`);
    return isUsage ? 2 : 1;
  }
}

// The exit is not left to the event loop: after a signal the run that was interrupted is still in it.
void start().then((code) => process.exit(code));
