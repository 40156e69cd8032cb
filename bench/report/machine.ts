import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, release, totalmem, type } from 'node:os';

const NAMED = [
  '@prisma/client',
  '@prisma/adapter-pg',
  'pg',
  'ioredis',
  'redis',
  'redlock',
  'redis-semaphore',
  'redlock-universal',
  'simple-redis-mutex',
];

/** What of the machine a figure depends on; not its name. */
export function machine(): Record<string, string> {
  const all = cpus();
  return {
    cores: `${all.length} × ${all[0]?.model ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()} ${arch()}`,
    node: process.versions.node,
    // Much more than nothing means that somebody else was at work, too.
    'load before': (loadavg()[0] ?? 0).toFixed(2),
  };
}

/** As package.json pins them. */
export function versions(): Record<string, string> {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version, devDependencies } = JSON.parse(text) as { version: string; devDependencies: Record<string, string> };
  return {
    'prisma-extension-fenced-lock': version,
    ...Object.fromEntries(NAMED.map((name) => [name, devDependencies[name] ?? 'missing'])),
  };
}
