// `npm run example -- <name>`: starts a PostgreSQL and a Redis, or takes those of DATABASE_URL (a superuser's; a database
// of its own is made there) and REDIS_URL, and runs the program main.ts of that example on them.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startPostgres, startRedis } from '../test/support/servers/index.js';
import { setUpExamples } from './database.js';

/** Has a command of its own, which starts its servers. */
const DEMO = 'demo';
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const here = fileURLToPath(new URL('.', import.meta.url));
const [name = '', ...args] = process.argv.slice(2);
const main = `${here}${name}/main.ts`;
if (!/^[\w-]+$/.test(name) || name === DEMO || !existsSync(main)) {
  const names = readdirSync(here).filter((folder) => folder !== DEMO && existsSync(`${here}${folder}/main.ts`));
  const why = name === '' ? '' : `There is no program to run for ${name}.\n\n`;
  console.error(
    `${why}Usage: npm run example -- <name>\n\nThe examples are ${names.join(', ')}. For the demo: npm run demo`,
  );
  process.exit(2);
}

const postgres = await startPostgres();
try {
  const redis = await startRedis({ allowEmulator: true });
  try {
    if (redis.kind === 'emulator')
      console.error('Redis is only an emulator here. Install redis-server, or set REDIS_URL.');
    const databaseUrl = await setUpExamples(postgres.url);
    process.exitCode = await run({ DATABASE_URL: databaseUrl, REDIS_URL: redis.url });
  } finally {
    await redis.stop();
  }
} finally {
  await postgres.stop();
}

/** The example in a process of its own. A signal goes on to it, and the servers stop when it has ended. */
function run(env: NodeJS.ProcessEnv): Promise<number> {
  // Nest needs decorators of its own.
  const tsconfig = `${here}${name}/tsconfig.json`;
  const compiler = existsSync(tsconfig) ? { TSX_TSCONFIG_PATH: tsconfig } : {};
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), main, ...args], {
    env: { ...process.env, ...compiler, ...env },
    stdio: 'inherit',
  });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    // Nest ends a process by the signal that it was told to end by.
    child.once('exit', (code, signal) => resolve(code ?? (signal !== null && SIGNALS.includes(signal) ? 0 : 1)));
  });
}
