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
import { readTable, type Table } from './migrations/identifiers.js';
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

  const command = (usage: string, description: string, ...options: readonly Option[]) => {
    const added = program
      .command(usage)
      .description(description)
      .option('--json', 'write one JSON document instead of text')
      .option('--schema <path>', 'file or folder of the Prisma schema')
      .option('--config <path>', 'path of the Prisma config');
    for (const option of options) added.addOption(option);
    return added;
  };
  const option = (flags: string, description: string) => new Option(flags, description);
  const several = <T>(flags: string, description: string, valid: (text: string) => T) =>
    option(flags, description).argParser((text: string, before: readonly T[] = []) => [...before, valid(text)]);

  const writing = [
    option('--dry-run', 'show what would be written, and write nothing'),
    option('--database-url <url>', 'refuse if a migration has failed in this database'),
  ];
  const print = option('--print', 'show the SQL that is written, too');
  const roles = several('--role <name>', 'only this role may lock; once for each', roleName);
  const knownField = option(
    '--field <name>',
    `name of the fence field; default: what the guard looks at, or ${DEFAULTS.fenceField}`,
  ).argParser(fieldName);
  const keyPrefix = option('--key-prefix <text>', 'what fencedLock was given as keyPrefix')
    .default(DEFAULTS.keyPrefix)
    .argParser(someText);
  const databaseUrl = option('--database-url <url>', `default: ${DATABASE_DEFAULT}`);
  const servers = [
    keyPrefix,
    databaseUrl,
    several('--redis-url <url>', `default: ${REDIS_DEFAULT}; once for each of independent nodes`, String),
  ];
  const stopped = () => world.stopped?.() ?? Promise.resolve();

  command('init', 'add a migration with the objects of fenced_lock', ...writing, roles, print).action((options) =>
    init(context, options),
  );
  command(
    'add-fence <models...>',
    'give models a fence: field, column and guard',
    ...writing,
    option('--field <name>', 'name of the fence field').default(DEFAULTS.fenceField).argParser(fieldName),
    option(
      '--guard <policy>',
      'writers without a token: allow them (default), require a token, or prove it by its admission; none: no guard',
    ).choices(POLICIES),
  ).action((models: string[], options) => addFence(context, models, options));
  command('remove-fence <models...>', 'take the fence of models away', ...writing, knownField).action(
    (models: string[], options) => removeFence(context, models, options),
  );
  command('upgrade', "bring the objects to this package's version, by a new migration", ...writing, print).action(
    (options) => upgrade(context, options),
  );
  command(
    'sql',
    "print the SQL of the objects, fences and guards, for prisma db push or another tool's migration",
    several('--table <name>', 'the fence of this table, without a Prisma project; once for each', tableOf).conflicts([
      'schema',
      'config',
      'field',
    ]),
    option('--column <name>', 'with --table: column of the fence').default(DEFAULTS.fenceField).argParser(someText),
    option('--down', 'with --table: take the fence away').conflicts(['guard', 'role']),
    knownField,
    option('--guard <policy>', 'of every fenced table; default: as in the migrations, or allow').choices(POLICIES),
    roles,
  ).action((options) => sql(context, options));
  command('gc', 'delete the rows of keys that nobody has locked for a while')
    .option('--older-than <time>', 'how long a key must have been idle, at least 1d', '1d')
    .option('--run <key>', 'only forget the last run of this job, so that it may run again in its interval')
    .option('--dry-run', 'only count')
    .option('--database-url <url>', `the database, as its owner; default: ${DATABASE_DEFAULT}`)
    .action((options) => gc(context, options));
  command(
    'doctor',
    'check both servers, and report what is wrong and what to do',
    knownField,
    option('--fix', 'set the sequence right, and begin a crash epoch'),
    option('--role <name>', "the application's role, if another than the connected one"),
    ...servers,
  ).action(async (options) => report(await doctor(context, options)));
  command('ls', 'list the keys that are held or waited for', ...servers)
    .option('--filter <text>', 'only keys that have this in their names')
    .option('--watch', 'show the list again and again, until it is stopped')
    .addOption(
      option('--interval <seconds>', 'with --watch: between two looks, 0.2 to 60').default(2).argParser(interval),
    )
    .action((options) => ls(context, options, stopped));
  command('history <key>', 'show the last turns of a key, as Postgres remembers them', databaseUrl).action(
    (key: string, options) => history(context, key, options),
  );
  command('unlock <key>', 'take a key from its holder', ...servers)
    .option('--dry-run', 'only show the holder')
    .action((key: string, options) => unlock(context, key, options));
  command('board', 'serve a page that shows the locks as they are taken, until it is stopped', ...servers)
    .addOption(option('--port <number>', '0: any that is free').default(7070).argParser(portNumber))
    .option('--host <address>', 'the address of this machine to listen at', '127.0.0.1')
    .option('--allow-force-release', 'let the page take keys from their holders')
    .option('--expose-without-login', 'listen at an address that others reach: the page has no login')
    .action((options) => board(context, options, stopped()));
  return program;
}

function failed(context: Context, program: Command, error: unknown, args: readonly string[]): number {
  // Commander also throws for help and version, with exit code 0. It has already printed its messages.
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
  // Somebody executes what it writes, also where the command itself was not reached.
  const wanted = args.find((arg) => program.commands.some((command) => command.name() === arg));
  if (wanted === 'sql') context.say(FAILS);
  if (error instanceof CommanderError) {
    context.document({ ok: false, error: error.message.replace(/^error: /, '') });
    return EXIT.misuse;
  }
  const message = advised(error);
  context.complain(`${program.name()}: ${message}`);
  context.document({ ok: false, error: message });
  return error instanceof Misuse ? EXIT.misuse : EXIT.failed;
}

/** The text, or what becomes of it, if it is one that is wanted. */
const valid =
  <T>(wanted: (text: string) => boolean, what: string, read: (text: string) => T) =>
  (text: string): T => {
    if (wanted(text)) return read(text);
    throw new InvalidArgumentError(what);
  };

/** The name becomes a line of the schema, so it must be valid for Prisma. */
const fieldName = valid(
  (text) => /^\p{L}[\p{L}\p{N}_]*$/u.test(text),
  'It must be a name: letters, digits and underscores, a letter first.',
  String,
);
/** Postgres treats `public` as all roles, even in quotation marks. */
const roleName = valid(
  (text) => text !== '' && text !== 'public',
  'It must be the name of a role. Without --role all roles may lock.',
  String,
);
const someText = valid((text) => text !== '', 'It must have at least one character.', String);
const tableOf = valid(
  (text) => readTable(text) !== undefined,
  'It must be table or schema.table, as in the database; a name with a dot in double quotes.',
  (text) => readTable(text) as Table,
);
const portNumber = valid(
  (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535,
  'It must be a port: 0 to 65535.',
  Number,
);
const interval = valid(
  (text) => Number(text) >= 0.2 && Number(text) <= 60,
  'It must be a number of seconds from 0.2 to 60.',
  Number,
);

function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
