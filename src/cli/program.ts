import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { DEFAULTS } from '../options/options.js';
import { addFence } from './commands/add-fence.js';
import { doctor } from './commands/doctor.js';
import { gc } from './commands/gc.js';
import { init } from './commands/init.js';
import { ls } from './commands/ls.js';
import { removeFence } from './commands/remove-fence.js';
import { sql } from './commands/sql.js';
import { unlock } from './commands/unlock.js';
import { upgrade } from './commands/upgrade.js';
import { Context, type World } from './context.js';
import { BEYOND } from './doctor/position.js';
import { POLICIES } from './migrations/fence-sql.js';
import { Misuse, messageOf, Problem } from './problem.js';

/** What the process ends with. */
const EXIT = { done: 0, failed: 1, misuse: 2 } as const;

/** Runs one command line, without the program's own name. Returns the exit code. */
export async function run(args: readonly string[], world: World): Promise<number> {
  // What stands behind `--` is no option, but may be a key of that name.
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
    return failed(context, program, error);
  }
}

function describe(context: Context, world: World, report: (healthy: boolean) => void): Command {
  const program = new Command('fenced-lock')
    .description('Sets up, changes and looks at the database side of prisma-extension-fenced-lock.')
    .version(ownVersion())
    .exitOverride()
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
    new Option('--key-prefix <text>', 'what fencedLock was given as keyPrefix').default(DEFAULTS.keyPrefix);
  const redisUrl = () =>
    new Option('--redis-url <url>', 'default: REDIS_URL; once for each of independent nodes').argParser(
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
    .option('--dry-run', 'only count')
    .option('--database-url <url>', 'the database, as its owner; default: DATABASE_URL')
    .action((options) => gc(context, options));
  command('doctor', 'look at both servers, and say what is wrong and what to do')
    .addOption(knownField())
    .option('--fix', 'set the sequence right, and begin a crash epoch')
    .addOption(
      new Option(
        '--up-to <token>',
        'with --fix: set the sequence as far as this, though it looks implausible',
      ).argParser(token),
    )
    .option('--role <name>', "the application's role, if another than the connected one")
    .addOption(keyPrefix())
    .option('--database-url <url>', 'default: DATABASE_URL')
    .addOption(redisUrl())
    .action(async (options) => report(await doctor(context, options)));
  const looking = (usage: string, description: string) =>
    command(usage, description)
      .addOption(keyPrefix())
      .option('--database-url <url>', 'default: DATABASE_URL')
      .addOption(redisUrl());
  looking('ls', 'list the keys that somebody has or waits for').action((options) => ls(context, options));
  looking('unlock <key>', 'take a key from whoever has it')
    .option('--dry-run', 'only show who has it')
    .action((key: string, options) => unlock(context, key, options));
  return program;
}

function failed(context: Context, program: Command, error: unknown): number {
  // Help and version "fail" as well, with exit code 0. The rest has been complained about.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.misuse;
  const message = error instanceof Problem ? error.message : `Unexpected: ${messageOf(error)}`;
  context.complain(`${program.name()}: ${message}`);
  context.document({ ok: false, error: message });
  return error instanceof Misuse ? EXIT.misuse : EXIT.failed;
}

/** It becomes a line of the schema, so it must be what Prisma calls a name. */
function fieldName(text: string): string {
  if (/^[A-Za-z]\w*$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a name: letters, digits and underscores, a letter first.');
}

/** Postgres takes `public` for everybody, in quotation marks too. */
function roleName(text: string): string {
  if (text !== '' && text !== 'public') return text;
  throw new InvalidArgumentError('It must be the name of a role. Without --role everybody may lock.');
}

function token(text: string): bigint {
  if (/^\d{1,16}$/.test(text) && BigInt(text) <= BEYOND) return BigInt(text);
  throw new InvalidArgumentError(`It must be a token, and at most ${BEYOND}: no lock draws a higher one.`);
}

function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
