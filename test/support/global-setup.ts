import type { TestProject } from 'vitest/node';
import { onRedis } from '../../src/addons/testing/servers/redis.js';
import { ServerUnavailable } from '../../src/addons/testing/servers/server.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { inCI } from './ci.js';
import { startPostgres, startRedis } from './servers/index.js';
import { setUpShop } from './shop-database.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The application role's url, and the superuser's. */
    postgres: { app: string; admin: string; version: string };
    /** `undefined` where no real Redis can be had; the reason is then told. */
    redis: { url: string | undefined; reason: string };
  }
}

/** Nobody takes the power from this server; files that run side by side have their clients on it. */
const SETTINGS = { fsync: 'off', max_connections: '500' };

/** One PostgreSQL and one Redis for all the tests that do not hurt them; the others start their own. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres({ settings: SETTINGS });
  project.provide('postgres', { app: await setUpShop(postgres), admin: postgres.url, version: postgres.version });
  const redis = await startRedis().catch((error: Error) => {
    if (error instanceof ServerUnavailable && !inCI()) return error;
    throw error;
  });
  if (redis instanceof ServerUnavailable) {
    project.provide('redis', { url: undefined, reason: redis.message });
    return () => postgres.stop();
  }
  await loadScripts(redis.url);
  project.provide('redis', { url: redis.url, reason: '' });
  return async () => {
    await Promise.all([postgres.stop(), redis.stop()]);
  };
}

/** Tests that hold back a command know it by its hash. Where the server lacks a script, the command has its text instead. */
async function loadScripts(url: string): Promise<void> {
  await onRedis(url, async (redis) => {
    for (const { lua } of Object.values(scripts)) await redis.script('LOAD', lua);
  });
}
