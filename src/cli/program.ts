import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { DEFAULTS } from '../options/options.js';
import { addFence } from './commands/add-fence.js';
import { board } from './commands/board.js';
import { doctor } from './commands/doctor.js';
import { gc } from './commands/gc.js';
import { history } from './commands/history.js';
import { ls } from './commands/ls.js';
import { init, upgrade } from './commands/objects.js';
import { removeFence } from './commands/remove-fence.js';
import { FAILS, sql } from './commands/sql.js';
import { unlock } from './commands/unlock.js';
import { Context, type World } from './context.js';
import { POLICIES } from './migrations/fence-sql.js';
import { advised, Misuse } from './problem.js';

/** Exit codes of the process. */
const EXIT = { done: 0, failed: 1, misuse: 2 } as const;

/** Where a URL comes from that is not given, as `servers/urls.ts` looks for it. */
const DATABASE_DEFAULT = 'DATABASE_URL, else that of the Prisma config';
const REDIS_DEFAULT = 'REDIS_URL, also from the .env that the Prisma config loads';

/** Runs one command line (without the program's name). Returns the exit code. */
export async function run(args: readonly string[], world: World): Promise<number> {
  // After `--`, an argument is not an option. It may be a key with that name.
  const end = args.indexOf('--');
  const context = new Context(world, args.slice(0, end < 0 ? undefined : end).includes('--json'));
  let healthy = true;
  const program = describe(context, world, (result) => {
    healthy = result;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return healthy ? EXIT.done : EXIT.failed;
  } catch (error) {
    return failed(context, program, error, args);
  }
}

function describe(context: Context, world: World, report: (healthy: boolean) => void): Command {
  const program = new Command('fenced-lock')
    .description('Sets up, changes and looks at the database side of prisma-extension-fenced-lock.')
    .version(ownVersion())
    .exitOverride()
    .showHelpAfterError('(--help shows the commands, and with a command its options)')
    .configureOutput({
      writeOut: (text) => world.stdout.write(text),
      writeErr: (text) => world.stderr.write(text),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText('after', '\nExit codes: 0 done or healthy, 1 a fault was found or the command failed, 2 wrong usage.');

  const command = (usage: string, description: string) =>
    program
      .command(usage)
      .description(description)
      .option('--json', 'write one JSON document instead of text')
      .option('--schema <path>', 'file or folder of the Prisma schema')
      .option('--config <path>', 'path of the Prisma config');
  const writing = (usage: string, description: string) =>
    command(usage, description)
      .option('--dry-run', 'show what would be written, and write nothing')
      .option('--database-url <url>', 'refuse if a migration has failed in this database');
  const field = () =>
    new Option('--field <name>', 'name of the fence field').default(DEFAULTS.fenceField).argParser(fieldName);
  const knownField = () =>
    new Option(
      '--field <name>',
      `name of the fence field; default: what the guard looks at, or ${DEFAULTS.fenceField}`,
    ).argParser(fieldName);
  const keyPrefix = () =>
    new Option('--key-prefix <text>', 'what fencedLock was given as keyPrefix')
      .default(DEFAULTS.keyPrefix)
      .argParser(keyPrefixOf);
  const redisUrl = () =>
    new Option('--redis-url <url>', `default: ${REDIS_DEFAULT}; once for each of independent nodes`).argParser(
      (url: string, before: readonly string[] = []) => [...before, url],
    );

  const roles = () =>
    new Option('--role <name>', 'only this role may lock; once for each').argParser(
      (name: string, before: readonly string[] = []) => [...before, roleName(name)],
    );
  const print = () => new Option('--print', 'show the SQL that is written, too');
  writing('init', 'add a migration with the objects of fenced_lock')
    .addOption(roles())
    .addOption(print())
    .action((options) => init(context, options));
  writing('add-fence <models...>', 'give models a fence: field, column and guard')
    .addOption(field())
    .addOption(
      new Option(
        '--guard <policy>',
        'writers without a token: allow them (default), require a token, or prove it by its admission; none: no guard',
      ).choices(POLICIES),
    )
    .action((models: string[], options) => addFence(context, models, options));
  writing('remove-fence <models...>', 'take the fence of models away')
    .addOption(knownField())
    .action((models: string[], options) => removeFence(context, models, options));
  writing('upgrade', "bring the objects to this package's version, by a new migration")
    .addOption(print())
    .action((options) => upgrade(context, options));
  command('sql', 'write the SQL of the objects, fences and guards to stdout, for prisma db push')
    .addOption(knownField())
    .addOption(
      new Option('--guard <policy>', 'of every fenced table; default: as in the migrations, or allow').choices(
        POLICIES,
      ),
    )
    .addOption(roles())
    .action((options) => sql(context, options));
  command('gc', 'delete the rows of keys that nobody has locked for a while')
    .option('--older-than <time>', 'how long a key must have been idle, at least 1d', '1d')
    .option('--run <key>', 'only forget the last run of this job, so that it may run again in its interval')
    .option('--dry-run', 'only count')
    .option('--database-url <url>', `the database, as its owner; default: ${DATABASE_DEFAULT}`)
    .action((options) => gc(context, options));
  command('doctor', 'check both servers, and report what is wrong and what to do')
    .addOption(knownField())
    .option('--fix', 'set the sequence right, and begin a crash epoch')
    .option('--role <name>', "the application's role, if another than the connected one")
    .addOption(keyPrefix())
    .option('--database-url <url>', `default: ${DATABASE_DEFAULT}`)
    .addOption(redisUrl())
    .action(async (options) => report(await doctor(context, options)));
  const looking = (usage: string, description: string) =>
    command(usage, description)
      .addOption(keyPrefix())
      .option('--database-url <url>', `default: ${DATABASE_DEFAULT}`)
      .addOption(redisUrl());
  const stopped = () => world.stopped?.() ?? Promise.resolve();
  looking('ls', 'list the keys that are held or waited for')
    .option('--filter <text>', 'only keys that have this in their names')
    .option('--watch', 'show the list again and again, until it is stopped')
    .addOption(
      new Option('--interval <seconds>', 'with --watch: between two looks, 0.2 to 60').default(2).argParser(interval),
    )
    .action((options) => ls(context, options, stopped));
  command('history <key>', 'show the last turns of a key, as Postgres remembers them')
    .option('--database-url <url>', `default: ${DATABASE_DEFAULT}`)
    .action((key: string, options) => history(context, key, options));
  looking('unlock <key>', 'take a key from its holder')
    .option('--dry-run', 'only show the holder')
    .action((key: string, options) => unlock(context, key, options));
  looking('board', 'serve a page that shows the locks as they are taken, until it is stopped')
    .addOption(new Option('--port <number>', '0: any that is free').default(7070).argParser(portNumber))
    .option('--host <address>', 'the address of this machine to listen at', '127.0.0.1')
    .option('--allow-force-release', 'let the page take keys from their holders')
    .option('--expose-without-login', 'listen at an address that others reach: the page has no login')
    .action((options) => board(context, options, stopped()));
  return program;
}

function failed(context: Context, program: Command, error: unknown, args: readonly string[]): number {
  // Commander also throws for help and version, with exit code 0. It has already printed its messages.
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.done;
    // The command itself was not reached, and somebody executes what it writes.
    const wanted = args.find((arg) => program.commands.some((command) => command.name() === arg));
    if (wanted === 'sql') context.say(FAILS);
    context.document({ ok: false, error: error.message.replace(/^error: /, '') });
    return EXIT.misuse;
  }
  const message = advised(error);
  context.complain(`${program.name()}: ${message}`);
  context.document({ ok: false, error: message });
  return error instanceof Misuse ? EXIT.misuse : EXIT.failed;
}

/** The name becomes a line of the schema, so it must be valid for Prisma. */
function fieldName(text: string): string {
  if (/^\p{L}[\p{L}\p{N}_]*$/u.test(text)) return text;
  throw new InvalidArgumentError('It must be a name: letters, digits and underscores, a letter first.');
}

/** Postgres treats `public` as all roles, even in quotation marks. */
function roleName(text: string): string {
  if (text !== '' && text !== 'public') return text;
  throw new InvalidArgumentError('It must be the name of a role. Without --role all roles may lock.');
}

/** As `fencedLock` takes it. */
function keyPrefixOf(text: string): string {
  if (text !== '') return text;
  throw new InvalidArgumentError('It must have at least one character.');
}

function portNumber(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('It must be a port: 0 to 65535.');
}

function interval(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== '' && seconds >= 0.2 && seconds <= 60) return seconds;
  throw new InvalidArgumentError('It must be a number of seconds from 0.2 to 60.');
}

function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
